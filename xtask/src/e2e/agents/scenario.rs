//! What is played with every client: three turns, the third interrupted in the middle of a command; back before the second
//! with files and conversation; on with the command that rwd prints; undone; uninstalled.

use std::collections::BTreeSet;
use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::{disk::Files, world::World};
use crate::Result;

/// The scripts of the turns, by their tag; see `mock.mjs`.
pub(super) fn scripts() -> Value {
    json!({
        "t1": { "say": "Creating.", "end": "Turn one is done.", "steps": [
            [["write", { "path": "app.txt", "content": "line one\nline two\n" }]],
            [["edit", { "path": "app.txt", "old": "line one", "new": "line 1" }]],
            [["bash", { "command": "mkdir -p out && echo report > out/report.txt && rm old.txt && sed -i s/apple/fig/ price.txt" }]],
        ] },
        "t2": { "say": "Changing.", "end": "Turn two is done.", "steps": [
            [["edit", { "path": "app.txt", "old": "line two", "new": "line 2" }],
             ["write", { "path": "notes.md", "content": "# notes\nsecond turn\n" }]],
            [["bash", { "command": "echo more >> out/report.txt; rm seed.txt; printf x > made-by-shell.txt; chmod +x price.txt; false" }]],
        ] },
        "t3": { "say": "Something long.", "end": "Turn three is done.", "steps": [
            [["bash", { "command": "rm -r out; echo gone > price.txt; echo started > long.txt; sleep 45; echo finished >> long.txt" }]],
        ] },
        "t4": { "say": "Going on.", "end": "Turn four is done.", "steps": [
            [["edit", { "path": "app.txt", "old": "line two", "new": "line four" }]],
            [["bash", { "command": "cat out/report.txt seed.txt price.txt" }]],
        ] },
        "b1": { "say": "", "end": "The first is done.", "steps": [[["write", { "path": "one.txt", "content": "one\n" }]]] },
        "b2": { "say": "Asking a helper.", "end": "The helper was asked.", "steps": [
            [["agent", { "prompt": "Write the helper's files. #help" }]],
        ] },
        "help": { "say": "", "end": "The helper is done.", "steps": [
            [["write", { "path": "helper.txt", "content": "by the helper\n" }]],
            [["bash", { "command": "echo by its shell >> helper.txt; rm seed.txt" }]],
        ] },
        "b3": { "say": "In the background.", "end": "It was begun.", "steps": [
            [["bash", { "command": "echo begun > late.txt; sleep 2; echo ended >> late.txt; rm old.txt", "background": true }]],
        ] },
        "b4": { "say": "", "end": "The fourth is done.", "steps": [[["write", { "path": "one.txt", "content": "four\n" }]]] },
        "b5": { "say": "", "end": "The fifth is done.", "steps": [[["write", { "path": "five.txt", "content": "five\n" }]]] },
        "t5": { "say": "", "end": "Turn five is done.", "steps": [] },
    })
}

const PROMPTS: [&str; 3] = ["Make the files, please. #t1", "Change some of them. #t2", "Now something long. #t3"];
const NEXT: &str = "Go on from here. #t4";
/// How a notice to the model begins.
const NOTICE: &str = "[rwd]";

/// Plays it all.
pub(super) fn play(world: &World) -> Result {
    let client = world.client;
    repository(world)?;
    let settings = installed(world)?;
    let (session, states) = three_turns(world)?;
    recorded(world, &session, &[(1, true), (2, true), (3, false)])?;
    world.write_shop("mine.txt", "made by hand\n")?;
    let before = world.files()?;
    let played = both(world, &session, &states[1], &before)?;
    let said = world.without_rwd(|| world.turn("without-rwd", &(client.resume)(&played, "Anything. #t5")))?;
    expect(said.contains("Turn five is done."), &format!("without rwd the client said {said}"))?;
    uninstalled(world, &settings)?;
    knows_mcp(world)?;
    (client.habit)(world)
}

/// The command of docs/mcp.md is one that the client takes, and what it then runs is `rwd mcp`.
fn knows_mcp(world: &World) -> Result {
    let Some((add, shown)) = world.client.mcp else { return Ok(()) };
    world.client_tells("mcp-add", add)?;
    let said = world.client_tells("mcp-shown", shown)?;
    // Claude Code and Codex say the program and its arguments on lines of their own.
    let line = |start: &str, end: &str| said.lines().any(|line| line.trim().starts_with(start) && line.ends_with(end));
    let known = said.contains("rwd mcp") || line("Command: rwd", "rwd") && line("Args: mcp", "mcp");
    let known = known || line("command: rwd", "rwd") && line("args: mcp", "mcp");
    expect(known, &format!("the client does not know the server: {said}"))?;
    println!("{}: took the command of docs/mcp.md", world.client.name);
    Ok(())
}

/// Files and conversation go back together, and come again; the child that went on.
fn both(world: &World, session: &str, wanted: &Files, before: &Files) -> Result<String> {
    let client = world.client;
    let parent = (client.record)(world, session)?;
    let (child, operation) = back(world, session, wanted, client.continues)?;
    went_on(world, &child)?;
    // The child remembers turn 1, so what was asked next is its second turn.
    recorded(world, &child, &[(2, true)])?;
    expect((client.record)(world, session)? == parent, "the parent's record was changed")?;
    println!("{}: the child {child} went on from turn 1; the parent is as it was", client.name);
    // Turn 4 changed what is taken back: without a word about that nothing is.
    world.rwd(&["undo", &operation, "--with-others", "--yes"])?;
    same(&world.files()?, before, "undo")?;
    began_anew(world, session, before)?;
    Ok(child)
}

/// The model is told once, with the next prompt, which files were put back; and its edit of one of them works.
fn told_once(first: &[Value], last: &[Value]) -> Result {
    let notices: Vec<_> = first.iter().filter(|item| text(item).contains(NOTICE)).collect();
    expect(notices.len() == 1, &format!("the model was told {} times: {notices:#?}", notices.len()))?;
    expect(text(notices[0]).contains("app.txt"), &format!("restored files are not named: {}", notices[0]))?;
    let told = last.iter().filter(|item| text(item).contains(NOTICE)).count();
    expect(told == 1, &format!("at the end of the turn the model was told {told} times"))
}

/// A repository with something to lose.
pub(super) fn repository(world: &World) -> Result {
    world.git(&["init", "-q", "-b", "main", "."])?;
    for (path, text) in
        [("README.md", "# shop\n"), ("old.txt", "old\n"), ("seed.txt", "seed\n"), ("price.txt", "apple 3\n")]
    {
        world.write_shop(path, text)?;
    }
    world.git(&["add", "-A"])?;
    world.git(&["commit", "-qm", "Start"]).map(drop)
}

/// Settings before rwd came, by file; `None`: there was none.
type Settings = Vec<(PathBuf, Option<Vec<u8>>)>;

/// `rwd init`: a dry run writes nothing, and what it names is what is changed.
fn installed(world: &World) -> Result<Settings> {
    let name = world.client.name;
    let arguments = [&["init", "--agent", name][..], world.client.init].concat();
    let planned = world.rwd(&[&arguments[..], &["--dry-run"]].concat())?;
    let files = planned["files"].as_array().ok_or_else(|| format!("no files are planned: {planned}"))?;
    let paths = files.iter().filter_map(|file| file["file"]["path"].as_str());
    let before: Settings = paths.map(|path| (world.shop.join(path), fs::read(world.shop.join(path)).ok())).collect();
    expect(!before.is_empty(), &format!("no files are planned: {planned}"))?;
    world.rwd(&[&arguments[..], &["--yes"]].concat())?;
    for (path, old) in &before {
        expect(fs::read(path).ok() != *old, &format!("{} was not changed", path.display()))?;
    }
    let again = world.rwd(&[&arguments[..], &["--yes"]].concat())?;
    expect(again["files"] == json!([]), &format!("a second init changes {}", again["files"]))?;
    Ok(before)
}

/// The session, and the files before the first turn and after each.
fn three_turns(world: &World) -> Result<(String, Vec<Files>)> {
    let client = world.client;
    let mut states = vec![world.files()?];
    let said = world.turn("turn-1", &(client.begin)(PROMPTS[0]))?;
    let session = (client.session)(world, &said)?;
    states.push(world.files()?);
    world.turn("turn-2", &(client.resume)(&session, PROMPTS[1]))?;
    states.push(world.files()?);
    world.turn_until("turn-3", &(client.resume)(&session, PROMPTS[2]), &world.shop.join("long.txt"))?;
    states.push(world.files()?);
    let made: BTreeSet<_> = ["app.txt", "notes.md", "made-by-shell.txt"].map(PathBuf::from).into();
    expect(made.iter().all(|path| states[2].contains_key(path)), "the first turns did not do what their scripts say")?;
    expect(
        states[3].get(&PathBuf::from("long.txt")).is_some_and(|text| text == b"started\n"),
        "turn 3 was not cut off",
    )?;
    println!(
        "{}: three turns of {session} played, the third stopped by {}",
        client.name,
        super::spelt(world.interrupt)
    );
    Ok((session, states))
}

/// The log has these turns of a session and no others: the first point of each, and the last of those that ended.
pub(super) fn recorded(world: &World, session: &str, turns: &[(u64, bool)]) -> Result {
    let log = world.rwd(&["log", "--all"])?;
    let named = format!("{}:{session}", world.client.name);
    let points = log["points"].as_array().ok_or("no points")?.iter().filter(|point| point["session"] == named.as_str());
    let turn_of = |point: &Value| Some((point["turn"].as_u64()?, point["kind"].as_str()?.to_owned()));
    let seen: BTreeSet<(u64, String)> = points.filter_map(turn_of).collect();
    let has = |turn: u64, kind: &str| seen.contains(&(turn, kind.to_owned()));
    for (turn, ended) in turns {
        expect(has(*turn, "turn-start"), &format!("turn {turn} of {named} has no start: {seen:?}"))?;
        expect(has(*turn, "turn-end") == *ended, &format!("the end of turn {turn} of {named}: {seen:?}"))?;
    }
    let played = |turn: u64| turns.iter().any(|(number, _)| *number == turn);
    expect(seen.iter().all(|(turn, _)| played(*turn)), &format!("turns of {named} that were not played: {seen:?}"))
}

/// Files and conversation as before turn 2; the child and the operation.
fn back(world: &World, session: &str, wanted: &Files, printed: fn(&str) -> String) -> Result<(String, String)> {
    let address = format!("{}:{session}/t2^", world.client.name);
    let done = world.rwd(&["to", &address, "--both", "--yes"])?;
    restored(world, &done, wanted)?;
    let child = done["childSessionId"].as_str().ok_or_else(|| format!("no child: {done}"))?;
    let to_go_on = done["continue"].as_str().unwrap_or_default();
    expect(to_go_on == printed(child), &format!("to go on, rwd prints {to_go_on:?}"))?;
    let operation = done["op"].as_str().ok_or("no operation")?;
    Ok((child.to_owned(), operation.to_owned()))
}

/// Every byte that was there then is there now, and what was made by hand still is.
fn restored(world: &World, done: &Value, wanted: &Files) -> Result {
    expect(done["status"] == "restored", &format!("not restored: {done}"))?;
    let files = world.files()?;
    for (path, bytes) in wanted {
        expect(files.get(path) == Some(bytes), &format!("{} is not as before turn 2", path.display()))?;
    }
    expect(files.contains_key(&PathBuf::from("mine.txt")), "what was made by hand is gone")
}

/// The model gets the conversation up to the cut, one notice and the new prompt, and nothing else.
fn went_on(world: &World, child: &str) -> Result {
    let first = remembers(world, child, &PROMPTS[..2], NEXT)?;
    told_once(&first, world.model.turns("talk")?.last().ok_or("no request")?)?;
    let edited = fs::read_to_string(world.shop.join("app.txt"))?;
    expect(edited.contains("line four"), &format!("the child's edit failed: {edited}"))
}

/// Plays the prompt `next` in a child. Its first request, which this gives, has what the parent's request had before the
/// last of `prompts`, item for item, a notice and `next`, and nothing else.
pub(super) fn remembers(world: &World, child: &str, prompts: &[&str], next: &str) -> Result<Vec<Value>> {
    let [.., before, dropped] = prompts else { return Err("nothing is dropped".into()) };
    let parent = world.model.turns("talk")?;
    let begun = parent.len();
    world.turn("in-child", &(world.client.resume)(child, next))?;
    let second = parent.iter().map(|talk| spoken(talk)).find(|talk| at_prompt(talk, dropped).is_some());
    let second = second.ok_or("no request of the turn that is dropped")?;
    let prefix = &second[..at_prompt(&second, dropped).unwrap_or_default()];
    expect(at_prompt(prefix, before).is_some(), "the parent does not remember the turn before")?;

    let requests = world.model.turns("talk")?;
    let first = spoken(requests.get(begun).ok_or("the child's turn made no request")?);
    for (at, wanted) in prefix.iter().enumerate() {
        let got = first.get(at).unwrap_or(&Value::Null);
        expect(got == wanted, &format!("item {at} differs:\n  parent {wanted}\n  child  {got}"))?;
    }
    let rest = first.get(prefix.len()..).unwrap_or_default();
    // A client may put the notice into the prompt's own message.
    let prompts = rest.iter().filter(|item| text(item).contains(next)).count();
    expect(prompts == 1, &format!("the new prompt is there {prompts} times: {rest:#?}"))?;
    let known = |item: &Value| text(item).contains(next) || text(item).contains(NOTICE);
    expect(rest.iter().all(known), &format!("more than notice and prompt: {rest:#?}"))?;
    Ok(first)
}

/// Before the first turn nothing of the conversation is left: a session without turns where the client takes one, else a
/// refusal that writes nothing.
fn began_anew(world: &World, session: &str, now: &Files) -> Result {
    let address = format!("{}:{session}/t1^", world.client.name);
    let arguments = ["to", &address, "--both", "--with-others", "--yes"];
    if !world.client.takes_empty {
        world.rwd_refuses(&arguments, "NOTHING_LEFT")?;
        return same(&world.files()?, now, "a refusal");
    }
    let done = world.rwd(&arguments)?;
    let child = done["childSessionId"].as_str().ok_or_else(|| format!("no child: {done}"))?;
    let begun = world.model.turns("talk")?.len();
    world.turn("anew", &(world.client.resume)(child, "Anew. #t5"))?;
    let requests = world.model.turns("talk")?;
    let first = spoken(requests.get(begun).ok_or("the empty child's turn made no request")?);
    expect(PROMPTS.iter().all(|prompt| at_prompt(&first, prompt).is_none()), "the empty child remembers a turn")?;
    let told = first.iter().filter(|item| text(item).contains(NOTICE)).count();
    expect(told == 1, &format!("the model of the empty child was told {told} times: {first:#?}"))
}

/// What was said and called, without the blocks that a client makes anew for every request.
fn spoken(talk: &[Value]) -> Vec<Value> {
    let made_anew = ["<environment_context>", "<session_context>", "<user_instructions>"];
    let kept = talk.iter().filter(|item| {
        let text = text(item);
        text.contains(NOTICE)
            || (item["role"] != "system" && !made_anew.iter().any(|tag| text.trim_start().starts_with(tag)))
    });
    kept.cloned().collect()
}

fn text(item: &Value) -> &str {
    item["text"].as_str().unwrap_or_default()
}

fn at_prompt(talk: &[Value], prompt: &str) -> Option<usize> {
    talk.iter().position(|item| item["role"] == "user" && text(item).contains(prompt))
}

/// `rwd uninstall` leaves every settings file as it was before rwd came.
fn uninstalled(world: &World, before: &Settings) -> Result {
    world.rwd(&["uninstall", "--yes"])?;
    for (path, old) in before {
        let now = fs::read(path).ok();
        expect(
            now == *old,
            &format!(
                "{} is not as before: {:?}",
                path.display(),
                now.map(|b| String::from_utf8_lossy(&b).into_owned())
            ),
        )?;
    }
    println!("{}: uninstalled, the settings are as they were", world.client.name);
    Ok(())
}

/// Fails with the names of the files that differ.
pub(super) fn same(now: &Files, wanted: &Files, what: &str) -> Result {
    let names: BTreeSet<_> = now.keys().chain(wanted.keys()).collect();
    let differ: Vec<_> = names.into_iter().filter(|name| now.get(*name) != wanted.get(*name)).collect();
    expect(differ.is_empty(), &format!("after {what} these differ: {differ:?}"))
}

pub(super) fn expect(holds: bool, otherwise: &str) -> Result {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A comparison that dropped the notice, or kept what clients make anew, would prove nothing.
    #[test]
    fn what_is_compared_is_what_was_said_and_called() {
        let said = |role: &str, text: &str| json!({ "role": role, "text": text });
        let talk = [
            said("system", "You are an agent."),
            said("user", "<session_context>\nToday is a day.\n</session_context>"),
            said("user", PROMPTS[0]),
            json!({ "call": "Bash", "input": { "command": "ls" } }),
            json!({ "result": "app.txt" }),
            said("system", "hook context: [rwd] Files were put back."),
        ];
        let spoken = spoken(&talk);
        assert_eq!(spoken, talk[2..]);
        assert_eq!(at_prompt(&spoken, PROMPTS[0]), Some(0));
        assert_eq!(at_prompt(&spoken, PROMPTS[1]), None);
    }

    #[test]
    fn a_notice_that_is_missing_repeated_or_without_names_fails() {
        let told = |text: &str| json!({ "role": "user", "text": text });
        let good = [told("[rwd] 1 path restored (app.txt)")];
        assert!(told_once(&good, &good).is_ok());
        assert!(told_once(&[], &[]).is_err());
        assert!(told_once(&good, &[good[0].clone(), good[0].clone()]).is_err());
        let nameless = [told("[rwd] something was restored")];
        assert!(told_once(&nameless, &nameless).is_err());
    }
}
