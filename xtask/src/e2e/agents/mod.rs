//! Claude Code, Codex, Gemini CLI and opencode: real programs with scripted models. What differs between them is here and
//! in a file for each; what is played is in [`scenario`].

mod background;
mod claude;
mod codex;
mod disk;
mod gemini;
mod opencode;
mod scenario;
mod world;

use std::{ffi::OsString, path::Path};

use rustix::process::Signal;

use self::world::World;
use super::{install::Node, isolation, model::Model};
use crate::Result;

/// A client as the scenario sees it.
struct Client {
    /// As in `rwd init --agent NAME` and in `NAME:SESSION`; also the program.
    name: &'static str,
    /// Packages of npm with the version that is proven; the program comes with the first.
    packages: &'static [(&'static str, &'static str)],
    /// Writes settings that name the model and look for nothing outside.
    prepare: fn(&World) -> Result,
    /// What the program is told by its environment.
    environment: fn(&World) -> Vec<(String, String)>,
    /// More for `rwd init`.
    init: &'static [&'static str],
    /// Arguments for the first turn of a session.
    begin: fn(prompt: &str) -> Vec<String>,
    /// Arguments for one more turn of a session.
    resume: fn(session: &str, prompt: &str) -> Vec<String>,
    /// The command that rwd prints for people; its arguments for one turn without a terminal are those of `resume`.
    continues: fn(session: &str) -> String,
    /// The id of the session that printed this.
    session: fn(&World, said: &str) -> Result<String>,
    /// All that is recorded of a session, to see that it is left alone.
    record: fn(&World, session: &str) -> Result<Vec<u8>>,
    /// The client goes on in a session that has no turn yet.
    takes_empty: bool,
    /// How the third turn is stopped in the middle of a command; all is played once for each.
    interrupts: &'static [Signal],
    /// Turns whose work goes on after the model's last word, where the scripted model can ask for such: see
    /// [`background`].
    works_on: bool,
    /// How the client is told of `rwd mcp` (docs/mcp.md), and what then shows that it knows; `None` where its page has no
    /// command.
    mcp: Option<(&'static [&'static str], &'static [&'static str])>,
    /// A habit of the client that rwd's way to install its hooks is an answer to, checked once all else is over.
    habit: fn(&World) -> Result,
}

const CLIENTS: &[&Client] = &[&claude::CLIENT, &codex::CLIENT, &gemini::CLIENT, &opencode::CLIENT];

fn client(name: &str) -> Result<&'static Client> {
    CLIENTS.iter().find(|client| client.name == name).copied().ok_or_else(|| format!("no client {name}").into())
}

/// Installs what a client needs and plays the scenario where there is no network.
pub(super) fn run(name: &str, rwd: &Path, scratch: &Path) -> Result {
    let client = client(name)?;
    let node = Node::install()?;
    for (package, version) in client.packages {
        node.add_with_scripts(package, version)?;
    }
    let arguments = ["e2e", name, "--inside"].map(OsString::from);
    let rest = [scratch.into(), "--rwd".into(), rwd.into()];
    isolation::run(&arguments.into_iter().chain(rest).collect::<Vec<_>>())
}

/// SIGINT, SIGKILL.
fn spelt(signal: Signal) -> String {
    format!("{signal:?}").trim_matches('"').replace("Signal::", "SIG")
}

/// The scenario of one client, called where there is no network.
pub(super) fn run_inside(name: &str, rwd: &Path, scratch: &Path) -> Result {
    isolation::check()?;
    let client = client(name)?;
    for signal in client.interrupts {
        let world = World::set(client, rwd, &scratch.join(spelt(*signal)), *signal)?;
        let played = scenario::play(&world);
        world.end_strays();
        played.map_err(|error| format!("{error}\n{}", world.last_words()))?;
    }
    if client.works_on {
        let world = World::set(client, rwd, &scratch.join("background"), Signal::INT)?;
        let played = background::play(&world);
        world.end_strays();
        played.map_err(|error| format!("{error}\n{}", world.last_words()))?;
    }
    Ok(())
}
