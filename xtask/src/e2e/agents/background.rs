//! Turns whose work goes on after the model's last word: a sub-agent at work in the background, and a shell command sent there.
//! The client then takes the turn up again with a prompt that nobody wrote, which is no turn of its own.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{
    scenario::{expect, recorded, remembers, repository, same},
    world::World,
};
use crate::Result;

/// The turns, by the tags of their scripts.
const PROMPTS: [&str; 4] =
    ["Begin with one file. #b1", "Let a helper write some. #b2", "Something that takes long. #b3", "The last. #b4"];
const NEXT: &str = "Go on in another way. #b5";

/// Four turns, numbered as they were asked, each with all that it did; then back before the third and before the second,
/// with files and conversation.
pub(super) fn play(world: &World) -> Result {
    let client = world.client;
    repository(world)?;
    world.rwd(&[&["init", "--agent", client.name][..], client.init, &["--yes"]].concat())?;
    let mut states = vec![world.files()?];
    let said = world.turn("background-1", &(client.begin)(PROMPTS[0]))?;
    let session = (client.session)(world, &said)?;
    states.push(world.files()?);
    for (number, prompt) in (2..).zip(&PROMPTS[1..]) {
        world.turn(&format!("background-{number}"), &(client.resume)(&session, prompt))?;
        states.push(world.files()?);
    }
    let text = |file: &str| fs::read_to_string(world.shop.join(file)).unwrap_or_default();
    expect(text("helper.txt") == "by the helper\nby its shell\n", "the helper did not do what its script says")?;
    expect(states[2].contains_key(Path::new("helper.txt")), "the client did not wait for its helper")?;
    expect(text("late.txt") == "begun\nended\n", &format!("the command in the background: {:?}", text("late.txt")))?;
    recorded(world, &session, &[(1, true), (2, true), (3, true), (4, true)])?;
    let log = world.rwd(&["log", "--all"])?;
    expect(log["gaps"] == json!([]), &format!("something was not captured: {}", log["gaps"]))?;
    let parent = (client.record)(world, &session)?;
    // Else all this would prove nothing.
    let rows = parent.split(|byte| *byte == b'\n').filter_map(|row| serde_json::from_slice::<Value>(row).ok());
    let by_nobody = rows.filter(|row| row["type"] == "user" && row.to_string().contains("<task-notification>")).count();
    expect(by_nobody == 2, &format!("the client took its turns up again {by_nobody} times"))?;
    println!("{}: work went on in the background of two turns, and there are four turns", client.name);
    for turn in [3, 2] {
        let before = world.files()?;
        let address = format!("{}:{session}/t{turn}^", client.name);
        let done = world.rwd(&["to", &address, "--both", "--exact", "--yes"])?;
        same(&world.files()?, &states[turn - 1], &format!("going back before turn {turn}"))?;
        let child = done["childSessionId"].as_str().ok_or_else(|| format!("no child: {done}"))?;
        remembers(world, child, &PROMPTS[..turn], NEXT)?;
        recorded(world, child, &[(turn as u64, true)])?;
        expect((client.record)(world, &session)? == parent, "the parent's record was changed")?;
        let operation = done["op"].as_str().ok_or("no operation")?;
        fs::remove_file(world.shop.join("five.txt"))?;
        world.rwd(&["undo", operation, "--with-others", "--overwrite-drift", "--yes"])?;
        same(&world.files()?, &before, "undo")?;
    }
    println!("{}: back before the third and the second of them, and on", client.name);
    Ok(())
}
