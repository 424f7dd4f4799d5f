//! The only module that writes to the standard streams.

use std::io::{self, Write};

use crate::args::ColorChoice;
use crate::error::CliError;
use crate::wire::Answer;

/// Standard output and standard error, with what the flags say about them.
pub(crate) struct Output {
    stdout: Box<dyn Write>,
    stderr: Box<dyn Write>,
    /// One JSON object instead of text.
    pub(crate) json: bool,
    /// No remarks.
    pub(crate) quiet: bool,
    /// Colours on standard output.
    pub(crate) color: bool,
}

impl Output {
    pub(crate) fn new(stdout: Box<dyn Write>, stderr: Box<dyn Write>) -> Self {
        Self { stdout, stderr, json: false, quiet: false, color: false }
    }

    /// The answer: one object for machines, or what `human` gives for people.
    pub(crate) fn answer<T: Answer>(&mut self, answer: &T, human: impl FnOnce(&T) -> String) -> Result<(), CliError> {
        self.answer_as(T::VERB, answer, human)
    }

    /// The same under another verb's name.
    pub(crate) fn answer_as<T: Answer>(&mut self, verb: &str, answer: &T, human: impl FnOnce(&T) -> String) -> Result<(), CliError> {
        let text = if self.json { json(verb, answer)? } else { human(answer) };
        self.bytes(text.as_bytes())
    }

    /// Bytes to standard output, as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.stdout.write_all(bytes).and_then(|()| self.stdout.flush()).map_err(broken)
    }

    /// A remark for people on standard error: not with `--quiet`. Failing to write it changes nothing.
    pub(crate) fn remark(&mut self, text: &str) {
        if !self.quiet {
            self.note(text);
        }
    }

    /// Something that must be said on standard error, as a question or a warning.
    pub(crate) fn note(&mut self, text: &str) {
        // Nobody is left to be told that standard error is gone.
        let _ = writeln!(self.stderr, "{text}").and_then(|()| self.stderr.flush());
    }

    /// A question, without a line end.
    pub(crate) fn prompt(&mut self, text: &str) {
        let _ = write!(self.stderr, "{text}").and_then(|()| self.stderr.flush());
    }

    /// Wraps `text` in a colour, where colours are wanted.
    pub(crate) fn paint(&self, color: Color, text: &str) -> String {
        paint(self.color, color, text)
    }
}

/// One JSON object with its schema in front, and a line end.
pub(crate) fn json<T: Answer>(verb: &str, answer: &T) -> Result<String, CliError> {
    let body = serde_json::to_string(answer).map_err(|source| CliError::failure("the answer cannot be written as JSON", source))?;
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
