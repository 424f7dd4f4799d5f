//! The only module that writes to the standard streams.

use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::args::ColorChoice;
use crate::error::CliError;
use crate::signals::Watch;
use crate::wire::Answer;
use crate::world::World;

/// The standard streams, with what the flags say about them. Shared with whoever asks questions.
pub(crate) struct Output {
    streams: Mutex<Streams>,
    /// The line that shows progress: taken away before anything else is written.
    watch: Arc<Watch>,
    /// One JSON object instead of text.
    pub(crate) json: bool,
    /// No remarks.
    pub(crate) quiet: bool,
    /// Colours on standard output.
    pub(crate) color: bool,
    below: OnceLock<PathBuf>,
    /// Somebody was shown the plan and said yes to it; what is done afterwards is never more than that.
    agreed: AtomicBool,
    /// Where what people would be told goes as well, beside JSON: for whoever shows it elsewhere.
    pub(crate) words: Option<Words>,
}

/// Text that is kept.
pub(crate) type Words = Arc<Mutex<String>>;

struct Streams {
    stdin: Box<dyn BufRead + Send>,
    stdout: Box<dyn Write + Send>,
    stderr: Box<dyn Write + Send>,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("json", &self.json).field("quiet", &self.quiet).finish_non_exhaustive()
    }
}

impl Output {
    /// Takes the streams of a run.
    pub(crate) fn new(world: &mut World, watch: Arc<Watch>) -> Self {
        let streams = Streams {
            stdin: std::mem::replace(&mut world.stdin, Box::new(io::empty())),
            stdout: std::mem::replace(&mut world.stdout, Box::new(io::sink())),
            stderr: std::mem::replace(&mut world.stderr, Box::new(io::sink())),
        };
        Self {
            streams: Mutex::new(streams),
            watch,
            json: false,
            quiet: false,
            color: false,
            below: OnceLock::new(),
            agreed: AtomicBool::new(false),
            words: None,
        }
    }

    /// Somebody read the plan and said yes.
    pub(crate) fn agree(&self) {
        self.agreed.store(true, Ordering::Relaxed);
    }

    /// True where the names of what was done have been read in the plan.
    pub(crate) fn has_agreed(&self) -> bool {
        self.agreed.load(Ordering::Relaxed)
    }

    /// Says where paths of the workspace are named from: the start directory, below the root.
    pub(crate) fn stands_at(&self, below: PathBuf) {
        // One run, one workspace: a second answer would be the same.
        drop(self.below.set(below));
    }

    /// The directory, below the root, from which people are shown paths, so that they can be pasted where they are.
    /// Machines get them from the root.
    pub(crate) fn below(&self) -> &Path {
        self.below.get().map_or(Path::new(""), PathBuf::as_path)
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.watch.clear();
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Standard input and output, for a verb that speaks a protocol on them: nothing else uses them from then on.
    pub(crate) fn take_pipes(&self) -> (Box<dyn BufRead + Send>, Box<dyn Write + Send>) {
        let streams = &mut *self.streams();
        (
            std::mem::replace(&mut streams.stdin, Box::new(io::empty())),
            std::mem::replace(&mut streams.stdout, Box::new(io::sink())),
        )
    }

    /// The answer: one object for machines, or what `human` gives for people.
    pub(crate) fn answer<T: Answer>(&self, answer: &T, human: impl FnOnce(&T) -> String) -> Result<(), CliError> {
        self.answer_as(T::VERB, answer, human)
    }

    /// The same under another verb's name.
    pub(crate) fn answer_as<T: Answer>(
        &self,
        verb: &str,
        answer: &T,
        human: impl FnOnce(&T) -> String,
    ) -> Result<(), CliError> {
        if !self.json {
            return self.bytes(human(answer).as_bytes());
        }
        if self.words.is_some() {
            self.say(&human(answer));
        }
        self.bytes(json(verb, answer)?.as_bytes())
    }

    /// Adds to what people are told beside JSON, where somebody wants that.
    pub(crate) fn say(&self, text: &str) {
        if let Some(words) = &self.words {
            words.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
        }
    }

    /// Bytes to standard output, as they are.
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<(), CliError> {
        let stdout = &mut self.streams().stdout;
        stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(broken)
    }

    /// Copies what `from` yields to standard output.
    pub(crate) fn copy(&self, from: &mut dyn Read) -> Result<(), CliError> {
        let stdout = &mut self.streams().stdout;
        io::copy(from, stdout).and_then(|_| stdout.flush()).map_err(broken)
    }

    /// A remark for people on standard error: not with `--quiet`. Failing to write it changes nothing.
    pub(crate) fn remark(&self, text: &str) {
        if !self.quiet {
            self.note(text);
        }
    }

    /// Something that must be said on standard error, as a warning.
    pub(crate) fn note(&self, text: &str) {
        let stderr = &mut self.streams().stderr;
        // Nobody is left to be told that standard error is gone.
        drop(writeln!(stderr, "{text}").and_then(|()| stderr.flush()));
    }

    /// Asks on standard error and reads one line; `None` at the end of the input.
    pub(crate) fn ask(&self, question: &str) -> Option<String> {
        let mut streams = self.streams();
        write!(streams.stderr, "{question}").and_then(|()| streams.stderr.flush()).ok()?;
        let mut line = String::new();
        match streams.stdin.read_line(&mut line) {
            Ok(n) if n > 0 => Some(line.trim().to_lowercase()),
            _ => None,
        }
    }

    /// Reads standard input through `read`.
    pub(crate) fn with_stdin<T>(&self, read: impl FnOnce(&mut dyn Read) -> T) -> T {
        read(&mut self.streams().stdin)
    }

    /// Standard input itself, for whoever may not wait for its end. Afterwards it is empty.
    pub(crate) fn take_stdin(&self) -> Box<dyn BufRead + Send> {
        std::mem::replace(&mut self.streams().stdin, Box::new(io::empty()))
    }

    /// Wraps `text` in a colour, where colours are wanted.
    pub(crate) fn paint(&self, color: Color, text: &str) -> String {
        paint(self.color, color, text)
    }
}

/// One JSON object with its schema in front, and a line end.
pub(crate) fn json<T: Answer>(verb: &str, answer: &T) -> Result<String, CliError> {
    let body = serde_json::to_string(answer)
        .map_err(|source| CliError::failure("the answer cannot be written as JSON", source))?;
    let rest = body.strip_prefix('{').unwrap_or(&body);
    let comma = if rest == "}" { "" } else { "," };
    Ok(format!("{{\"schema\":\"rwd.{verb}/1\"{comma}{rest}\n"))
}

fn broken(source: io::Error) -> CliError {
    if source.kind() == io::ErrorKind::BrokenPipe {
        CliError::BrokenPipe
    } else {
        CliError::failure("the answer cannot be written", source)
    }
}

/// What colours mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Color {
    /// Ids and what to type.
    Id,
    /// Added.
    Green,
    /// Removed.
    Red,
    /// Warnings.
    Yellow,
    /// Less important.
    Dim,
}

pub(crate) fn paint(on: bool, color: Color, text: &str) -> String {
    let code = match color {
        Color::Id => "36",
        Color::Green => "32",
        Color::Red => "31",
        Color::Yellow => "33",
        Color::Dim => "2",
    };
    if on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// `--color` beats `NO_COLOR` beats `FORCE_COLOR` beats the terminal.
pub(crate) fn use_color(choice: ColorChoice, no_color: bool, force_color: bool, terminal: bool) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => !no_color && (force_color || terminal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_precedence() {
        assert!(use_color(ColorChoice::Always, true, false, false));
        assert!(!use_color(ColorChoice::Never, false, true, true));
        assert!(!use_color(ColorChoice::Auto, true, true, true));
        assert!(use_color(ColorChoice::Auto, false, true, false));
        assert!(use_color(ColorChoice::Auto, false, false, true));
        assert!(!use_color(ColorChoice::Auto, false, false, false));
    }
}
