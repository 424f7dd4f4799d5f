//! `rwd demo`: plays two turns of an agent in a directory of its own, takes them back, and checks every byte.
//!
//! Needs nothing: no workspace, no git binary, no configuration, and touches nothing of the user's.

mod kept;
mod stage;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::args::DemoArgs;
use crate::error::CliError;
use crate::run::Run;
use crate::wire;
use crate::world::World;
use crate::{exit, text};

use crate::text::put;
use kept::Kept;

/// What the play has come to.
struct Play<'a> {
    run: &'a Run,
    work: std::path::PathBuf,
    data: std::path::PathBuf,
    home: std::path::PathBuf,
    comparisons: u64,
    differing: Vec<Vec<u8>>,
}

pub(crate) fn demo(run: &Run, args: &DemoArgs) -> Result<u8, CliError> {
    let failed = |source: std::io::Error| CliError::failure("the demonstration's directory cannot be made", source);
    let scratch = tempfile::Builder::new().prefix("rwd-demo-").tempdir().map_err(failed)?;
    let top = scratch.path().canonicalize().map_err(failed)?;
    let mut play = Play {
        run,
        work: top.join("work"),
        data: top.join("data"),
        home: top.join("home"),
        comparisons: 0,
        differing: Vec::new(),
    };
    let ended = play.play();
    let dir = if args.keep { Some(wire::absolute(&scratch.keep())) } else { None };
    ended?;
    let passed = play.differing.is_empty() && play.comparisons > 0;
    let differing =
        play.differing.iter().map(|path| wire::absolute(Path::new(&*String::from_utf8_lossy(path)))).collect();
    let answer = wire::Demo { comparisons: play.comparisons, differing, passed, dir };
    run.out.answer(&answer, |answer| {
        let mut out = String::new();
        if answer.passed {
            put!(
                out,
                "\n{} of the whole tree, every byte as it should be\n",
                text::count(answer.comparisons, "comparison")
            );
        } else {
            text::paths(&mut out, std::path::Path::new(""), "these differ:", &answer.differing);
        }
        if let Some(dir) = &answer.dir {
            put!(out, "to look around: cd {}\n", crate::error::quote(&dir.line()));
        } else {
            out.push_str("to protect a project of yours: cd PROJECT && rwd init\n");
        }
        out
    })?;
    Ok(if passed { exit::OK } else { exit::FAILURE })
}

impl Play<'_> {
    fn play(&mut self) -> Result<(), CliError> {
        let io = |what: &'static str| move |source: std::io::Error| CliError::failure(what, source);
        let work = self.work.clone();
        std::fs::create_dir_all(&self.home).map_err(io("the demonstration's directory cannot be made"))?;
        stage::build(&work)?;
        let start = Kept::of(&work)?;
        self.tell("a git repository with uncommitted work, before the agent does anything");

        self.rwd(&["save", "--session", "demo:one", "--turn", "1", "--kind", "turn-start"], false)?;
        stage::first_turn(&work).map_err(io("the first turn cannot be played"))?;
        self.rwd(&["save", "--session", "demo:one", "--turn", "1", "--kind", "turn-end"], false)?;
        let after_first = Kept::of(&work)?;
        self.tell("turn 1: the agent edits two files and writes a new one");

        self.rwd(&["save", "--session", "demo:one", "--turn", "2", "--kind", "turn-start"], false)?;
        stage::second_turn(&work).map_err(io("the second turn cannot be played"))?;
        self.rwd(&["save", "--session", "demo:one", "--turn", "2", "--kind", "turn-end"], false)?;
        let after_second = Kept::of(&work)?;
        self.tell("turn 2: it runs shell commands: rm -rf, mv, chmod, ln -sf, a file becomes a directory");

        self.rwd(&["log"], true)?;
        self.rwd(&["preview", "t2^", "--exact"], true)?;
        self.compare("the preview changed nothing", &after_second)?;

        self.rwd(&["back", "--exact", "--yes"], true)?;
        self.compare("back: as it was before turn 2", &after_first)?;
        self.rwd(&["undo", "--yes"], true)?;
        self.compare("undo: as turn 2 left it", &after_second)?;
        self.rwd(&["redo", "--yes"], true)?;
        self.compare("redo: as it was before turn 2", &after_first)?;
        self.rwd(&["to", "t1^", "--exact", "--yes"], true)?;
        self.compare("to t1^: as it was before the agent did anything, git directory included", &start)?;
        self.rwd(&["verify", "--rehash"], true)?;
        Ok(())
    }

    fn tell(&self, text: &str) {
        if !self.run.out.json {
            // Whoever closed the pipe has seen enough; the answer at the end finds out.
            drop(self.run.out.bytes(format!("\n# {text}\n").as_bytes()));
        }
    }

    /// Runs a command of rwd in this process, and shows it with its answer.
    fn rwd(&self, words: &[&str], shown: bool) -> Result<(), CliError> {
        let answer = Captured::default();
        let errors = Captured::default();
        let place = ["-C".into(), self.work.clone().into(), "--data-dir".into(), self.data.clone().into()];
        let mut world = World::of_process();
        world.args = std::iter::once("rwd".into()).chain(words.iter().map(Into::into)).chain(place).collect();
        world.vars = BTreeMap::from([("HOME".into(), self.home.clone().into())]);
        world.cwd = Some(self.work.clone());
        world.stdin = Box::new(std::io::empty());
        world.stdout = Box::new(answer.clone());
        world.stderr = Box::new(errors.clone());
        (world.can_ask, world.stdout_is_terminal, world.stderr_is_terminal) = (false, false, false);
        let code = crate::run::run(world);
        if code != exit::OK {
            let message = format!("rwd {} ended with {code}: {}", words.join(" "), errors.text().trim_end());
            return Err(CliError::failure("the demonstration failed", message));
        }
        if shown && !self.run.out.json {
            let place = format!(" -C {} --data-dir {}", self.work.display(), self.data.display());
            let mut text = format!("\n$ rwd {}\n", words.join(" "));
            for line in answer.text().replace(&place, "").lines() {
                put!(text, "  {line}\n");
            }
            drop(self.run.out.bytes(text.as_bytes()));
        }
        Ok(())
    }

    fn compare(&mut self, what: &str, wanted: &Kept) -> Result<(), CliError> {
        let found = Kept::of(&self.work)?;
        let differing = wanted.differing(&found);
        self.comparisons += 1;
        let verdict = if differing.is_empty() {
            format!("{} compared by SHA-256, all the same", text::count(wanted.len() as u64, "path"))
        } else {
            format!("{} DIFFER", text::count(differing.len() as u64, "path"))
        };
        self.tell(&format!("{what}: {verdict}"));
        self.differing.extend(differing);
        Ok(())
    }
}

/// A stream that is kept.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl std::io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
