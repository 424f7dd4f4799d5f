//! `rwd hook AGENT`: what agent harnesses call at each step (design §§ 9, 11).
//!
//! A hook that ends with another code than 0 can stop the agent: Claude Code and Codex take 2 as a veto, Gemini CLI any
//! code from 2 on, a panic's 101 included. So this run ends with 0 whatever happens, says nothing that is no answer, and
//! gives up in time. The one veto there is is an answer: `hook.on_capture_failure = block`.

mod payload;
mod place;
mod process;
mod react;
mod store;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use harness_adapter::hooks::answer::{Answer, render};
use harness_adapter::hooks::{Agent, parse};

use crate::args::HookArgs;
use crate::exit;
use crate::run::Run;
use crate::world::World;

/// Flags that are followed by a value.
const WITH_VALUE: [&str; 5] = ["-C", "--data-dir", "--session", "--index", "--color"];

/// True when the command line is that of a hook, whatever else is wrong with it.
pub(crate) fn is_hook(args: &[OsString]) -> bool {
    let mut args = args.iter().skip(1);
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("hook") => return true,
            Some(flag) if WITH_VALUE.contains(&flag) => drop(args.next()),
            Some(flag) if flag.starts_with('-') && flag != "--" => {}
            _ => return false,
        }
    }
    false
}

/// Runs a hook so that its harness never sees it fail. Only people are told on standard error.
pub(crate) fn shielded(mut world: World, inner: impl FnOnce(World) -> u8) -> u8 {
    let watched = world.stderr_is_terminal || world.var("RWD_LOG").is_some();
    if !watched {
        world.stderr = Box::new(std::io::sink());
    }
    let inner = AssertUnwindSafe(|| inner(world));
    if watched {
        drop(catch_unwind(inner));
        return exit::OK;
    }
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    drop(catch_unwind(inner));
    std::panic::set_hook(before);
    exit::OK
}

/// Takes one report in and answers it.
pub(crate) fn hook(run: &Run, args: &HookArgs) -> u8 {
    let begun = Instant::now();
    if run.world.can_ask {
        run.out.note("rwd hook is called by an agent, which hands it a payload on standard input");
        return exit::OK;
    }
    let agent = args.agent.as_ref().and_then(|name| name.to_str()).and_then(Agent::named);
    let payload = payload::read(run.out.take_stdin());
    let env = |name: &str| run.world.var(name).and_then(|value| value.to_str()).map(str::to_owned);
    let event = parse(agent, &env, &payload);
    tracing::debug!(name = event.name, agent = event.agent.name(), "reported");
    if event.is_idle() {
        say(run, &render(&event, &Answer::default()));
        return exit::OK;
    }
    run.stop.listen();
    let reaction = react::react(run, &event, begun);
    say(run, &render(&event, &reaction.answer));
    reaction.afterwards();
    exit::OK
}

fn say(run: &Run, text: &str) {
    if text.is_empty() {
        return;
    }
    if let Err(error) = run.out.bytes(text.as_bytes()) {
        tracing::warn!(%error, "nobody reads the answer");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_known_by_its_verb_whatever_is_wrong_with_the_rest() {
        let is = |line: &str| is_hook(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in ["rwd hook", "rwd hook nobody --x", "rwd -C hook --json hook claude", "rwd --bogus hook gemini"] {
            assert!(is(line), "{line}");
        }
        for line in ["rwd", "rwd log hook", "rwd -C hook", "rwd -- hook", "rwd --data-dir hook save"] {
            assert!(!is(line), "{line}");
        }
    }

    #[test]
    fn a_hook_ends_well_whatever_happens_in_it() {
        let mut world = World::of_process();
        world.stderr_is_terminal = false;
        assert_eq!(shielded(world, |_| panic!("in a hook")), exit::OK);
        assert_eq!(shielded(World::of_process(), |_| exit::USAGE), exit::OK);
    }
}
