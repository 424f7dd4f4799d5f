//! One run of the command line: what was typed, where, and what it may use.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use checkpoint_core::Approver;
use clap::Parser;

use crate::args::{Cli, Global, LogArgs, Verb, frequent};
use crate::error::{CliError, Typed, guesses, human, quote_bytes, report};
use crate::output::{self, Output, Words, use_color};
use crate::signals::{Stop, Watch};
use crate::verbs::hook;
use crate::wire::ErrorAnswer;
use crate::world::World;
use crate::{exit, verbs};

/// A run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) world: World,
    pub(crate) global: Global,
    pub(crate) out: Arc<Output>,
    pub(crate) typed: Typed,
    pub(crate) stop: Stop,
    pub(crate) watch: Arc<Watch>,
    /// Who asks a person where there is no terminal: then it is a model that works the command line, and its word is no
    /// person's.
    pub(crate) host: Option<Arc<dyn Approver>>,
}

/// What a server gives to a run that it makes for its client.
#[derive(Debug)]
pub(crate) struct Hosted {
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) stop: Stop,
    pub(crate) words: Words,
}

impl Run {
    /// True when a question may be put.
    pub(crate) fn may_ask(&self) -> bool {
        self.world.can_ask && !self.global.no_input && !self.global.json
    }

    /// A path of a flag, made absolute.
    pub(crate) fn absolute(&self, path: &Path) -> Result<PathBuf, CliError> {
        if path.is_absolute() {
            return Ok(path.to_owned());
        }
        let cwd = self.world.cwd.as_deref();
        Ok(cwd.ok_or_else(|| CliError::usage("no-directory", "the current directory is gone"))?.join(path))
    }

    /// Where the search for a workspace starts, canonical: `-C`, else the current directory.
    pub(crate) fn start(&self) -> Result<PathBuf, CliError> {
        let given = self.absolute(self.global.dir.as_deref().unwrap_or_else(|| Path::new(".")))?;
        let start = given.canonicalize().map_err(|source| CliError::Usage {
            code: "no-directory",
            message: format!("{} cannot be entered: {source}", given.display()),
            hint: None,
        })?;
        if start.is_dir() {
            Ok(start)
        } else {
            Err(CliError::usage("no-directory", format!("{} is no directory", start.display())))
        }
    }
}

/// Runs a command line to its end and gives the exit code. Errors are told.
pub(crate) fn run(world: World) -> u8 {
    if hook::is_hook(&world.args) {
        hook::shielded(world, |world| typed_run(world, true, None))
    } else {
        typed_run(world, false, None)
    }
}

/// The same for a client of a server: JSON, with what people would be told beside it.
#[cfg(feature = "mcp")]
pub(crate) fn hosted(world: World, hosted: Hosted) -> u8 {
    typed_run(world, false, Some(hosted))
}

fn typed_run(mut world: World, hooked: bool, hosted: Option<Hosted>) -> u8 {
    let stop = hosted.as_ref().map(|hosted| hosted.stop.clone()).unwrap_or_default();
    let watch = Arc::new(Watch::new(stop.clone(), world.stderr_is_terminal));
    let mut out = Output::new(&mut world, Arc::clone(&watch));
    let typed = typed(&world.args);
    if world.args.get(1).is_some_and(|word| word == "help") {
        // `rwd help to` is `rwd to --help`.
        drop(world.args.remove(1));
        world.args.push("--help".into());
    }
    let parsed = frequent(&world.args).map_or_else(|| Cli::try_parse_from(&world.args), Ok);
    // Before the flags are known, `--json` can only be recognised by its looks.
    out.json = hosted.is_some() || world.args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json");
    out.words = hosted.as_ref().map(|hosted| Arc::clone(&hosted.words));
    let mut cli = match parsed {
        Ok(cli) => cli,
        Err(error) if !error.use_stderr() => {
            return finish(&out, out.bytes(error.to_string().as_bytes()).map(|()| exit::OK), &typed);
        }
        Err(error) => {
            // Standard output is read by the harness.
            if !out.json || hooked {
                let mut text = error.to_string().trim_end().to_owned();
                for (n, hint) in guesses(&error, &typed).iter().enumerate() {
                    text.push_str(if n == 0 { "\n\nhint: " } else { "\nhint: " });
                    text.push_str(hint);
                }
                out.note(&text);
                return exit::USAGE;
            }
            return finish(&out, Err(error.into()), &typed);
        }
    };
    // A model's yes counts where the settings say so, and there nobody else is asked.
    cli.global.json |= hosted.is_some();
    cli.global.yes |= hosted.is_some();
    out.json = cli.global.json && !hooked;
    if cli.global.quiet {
        watch.hush();
    }
    out.quiet = cli.global.quiet;
    out.color = use_color(
        cli.global.color,
        world.var("NO_COLOR").is_some(),
        world.var("FORCE_COLOR").is_some(),
        world.stdout_is_terminal,
    );
    // A harness may show as an error whatever a hook writes there.
    if !hooked || world.var("RWD_LOG").is_some() || world.stderr_is_terminal {
        log_to_stderr(cli.global.verbose, world.var("RWD_LOG").and_then(|filter| filter.to_str()));
    }
    let host = hosted.map(|hosted| hosted.approver);
    let run = Run { world, global: cli.global, out: Arc::new(out), typed, stop, watch, host };
    let verb = cli.verb.unwrap_or_else(|| Verb::Log(LogArgs::default()));
    let ended = verbs::dispatch(&run, verb).map_err(CliError::settled);
    finish(&run.out, ended, &run.typed)
}

/// Tells an error and gives its code.
fn finish(out: &Output, ended: Result<u8, CliError>, typed: &Typed) -> u8 {
    let error = match ended {
        Ok(code) => return code,
        Err(CliError::BrokenPipe) => return exit::OK,
        Err(error) => error,
    };
    let report = report(&error, typed);
    out.say(&(human(&report, out.below()) + "\n"));
    if out.json {
        match output::json("error", &ErrorAnswer { error: report.body }) {
            Ok(text) => drop(out.bytes(text.as_bytes())),
            Err(error) => out.note(&format!("error: {error}")),
        }
    } else {
        out.note(&human(&report, out.below()));
    }
    report.exit
}

/// How the command was typed, for hints that repeat it.
fn typed(args: &[OsString]) -> Typed {
    let mut typed = Typed { words: vec!["rwd".to_owned()], ..Typed::default() };
    let quoted = |arg: &OsString| quote_bytes(arg.as_bytes());
    let mut args = args.iter().skip(1);
    while let Some(arg) = args.next() {
        match arg.to_str().unwrap_or_default() {
            "--" => typed.rest = std::iter::once("--".to_owned()).chain(args.by_ref().map(quoted)).collect(),
            "--yes" | "-y" => typed.yes = true,
            "--no-input" => {}
            "--plan" => drop(args.next()),
            text if text.starts_with("--plan=") => {}
            "-C" | "--data-dir" => {
                let pair: Vec<String> = std::iter::once(quoted(arg)).chain(args.next().map(quoted)).collect();
                typed.place.extend(pair.iter().cloned());
                typed.words.extend(pair);
            }
            _ => {
                let bytes = arg.as_bytes();
                let flags: [&[u8]; 2] = [b"--data-dir=", b"-C"];
                if flags.iter().any(|flag| bytes.starts_with(flag) && bytes.len() > flag.len()) {
                    typed.place.push(quoted(arg));
                }
                typed.words.push(quoted(arg));
            }
        }
    }
    typed
}

/// Traces to standard error: warnings, with `-v` what is being done, with `-vv` details.
fn log_to_stderr(verbose: u8, filter: Option<&str>) {
    let default = match verbose {
        0 => "warn",
        1 => "info,rwd=debug,checkpoint_core=debug",
        2 => "debug",
        _ => "trace",
    };
    let filter = filter.and_then(|text| tracing_subscriber::EnvFilter::try_new(text).ok());
    let filter = filter.unwrap_or_else(|| tracing_subscriber::EnvFilter::new(default));
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).without_time();
    // A program that uses the library may have its own.
    drop(subscriber.try_init());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_repeat_what_was_typed_without_answers_given_beforehand() {
        let args = |line: &[&str]| line.iter().map(OsString::from).collect::<Vec<_>>();
        let typed = typed(&args(&[
            "/x/rwd",
            "-C",
            "a b",
            "to",
            "t1^",
            "--no-input",
            "--plan",
            "ff",
            "--exact",
            "-y",
            "--",
            "--yes",
            "c d",
        ]));
        assert_eq!(typed.with(&["--yes"]), "rwd -C 'a b' to t1^ --exact --yes -- --yes 'c d'");
        assert!(typed.yes);
        assert_eq!(typed.other(&["log"]), "rwd -C 'a b' log");
    }
}
