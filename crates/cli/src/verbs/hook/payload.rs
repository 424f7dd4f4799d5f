//! The payload on standard input.

use std::io::BufRead;
use std::sync::mpsc;
use std::time::Duration;

/// No more is kept. What follows is read all the same, so that who writes it is not cut off.
const MOST: usize = 64 << 20;
/// So much of one text is kept: nothing here needs the whole of a prompt, or of a file that a tool writes.
const LONGEST_TEXT: usize = 1 << 20;
/// A harness writes the payload at once. One that leaves the stream open is not waited for.
const WAIT: Duration = Duration::from_secs(5);

/// Reads one JSON object, or up to the end, for as long as is sensible. Long texts in it are cut.
pub(super) fn read(mut stdin: Box<dyn BufRead + Send>) -> Vec<u8> {
    let (send, received) = mpsc::channel();
    // Left to itself when it does not end: the process is about to.
    let reader = std::thread::Builder::new().spawn(move || {
        let mut intake = Intake::default();
        while !intake.is_whole() {
            match stdin.fill_buf() {
                Ok([]) => break,
                Ok(bytes) => {
                    let length = bytes.len();
                    intake.take(bytes);
                    stdin.consume(length);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // Nobody waits any more if this fails.
        drop(send.send(intake.kept));
    });
    match reader {
        Ok(_) => received.recv_timeout(WAIT).unwrap_or_default(),
        Err(error) => {
            tracing::warn!(%error, "the payload cannot be read");
            Vec::new()
        }
    }
}

/// Follows a JSON text byte by byte, each looked at once: payloads of many megabytes come in many pieces.
#[derive(Debug, Default)]
struct Intake {
    kept: Vec<u8>,
    /// Open brackets.
    depth: usize,
    /// The first thing is an object, so that its end can be told.
    object: bool,
    /// Bytes of the text that the last byte is in.
    text: Option<usize>,
    /// Bytes of an escape that are still to come.
    escape: u8,
    /// The rest of the text is left out.
    cut: bool,
}

impl Intake {
    /// True after the object: some harnesses send a line end after it, none sends more.
    const fn is_whole(&self) -> bool {
        self.object && self.depth == 0
    }

    fn take(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let keep = if let Some(length) = self.text { self.in_text(byte, length) } else { self.outside(byte) };
            if keep && self.kept.len() < MOST {
                self.kept.push(byte);
            }
            if self.is_whole() {
                return;
            }
        }
    }

    fn outside(&mut self, byte: u8) -> bool {
        match byte {
            b'{' | b'[' => {
                let before = self.kept.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.kept);
                self.object |= byte == b'{' && before.trim_ascii().is_empty();
                self.depth += 1;
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b'"' => self.text = Some(0),
            _ => {}
        }
        true
    }

    fn in_text(&mut self, byte: u8, length: usize) -> bool {
        self.text = Some(length + 1);
        if self.escape > 0 {
            // Four digits follow the `u` of `\u`.
            self.escape = if byte == b'u' && self.escape == 1 { 4 } else { self.escape - 1 };
            return !self.cut;
        }
        // Never in the middle of a character.
        self.cut |= length >= LONGEST_TEXT && byte & 0xc0 != 0x80;
        match byte {
            b'\\' => self.escape = 1,
            b'"' => {
                (self.text, self.cut) = (None, false);
                return true;
            }
            _ => {}
        }
        !self.cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that stays open.
    struct Open(std::io::Cursor<Vec<u8>>);

    impl std::io::Read for Open {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            match std::io::Read::read(&mut self.0, buf)? {
                0 => loop {
                    std::thread::park();
                },
                read => Ok(read),
            }
        }
    }

    #[test]
    fn a_payload_ends_with_its_object_and_a_stream_with_its_end() {
        let open = |text: &str| {
            read(Box::new(std::io::BufReader::with_capacity(4, Open(std::io::Cursor::new(text.as_bytes().to_vec())))))
        };
        assert_eq!(open("{\"a\":{\"b\":1}}\n").trim_ascii_end(), b"{\"a\":{\"b\":1}}");
        assert_eq!(open("\u{feff}{\"a\":1}\n").trim_ascii_end(), "\u{feff}{\"a\":1}".as_bytes());
        assert_eq!(read(Box::new(std::io::Cursor::new(b"{\"a\":".to_vec()))), b"{\"a\":");
    }

    fn kept(text: &[u8]) -> serde_json::Value {
        serde_json::from_slice(&read(Box::new(std::io::Cursor::new(text.to_vec())))).unwrap()
    }

    /// A payload larger than all that is kept can still be understood: its long texts lose their ends.
    #[test]
    fn a_long_text_is_cut_between_characters_and_what_follows_is_there() {
        for unit in ["x", "}", "\"", "\\", "\u{e9}", "\u{1f600}", "\u{1}"] {
            let long = unit.repeat(2 * LONGEST_TEXT / unit.len());
            let payload = serde_json::json!({"a": long, "b": {"c": [long, 1]}, "d": "end"});
            let read = kept(payload.to_string().as_bytes());
            assert_eq!(read["d"], "end", "{unit:?}");
            for text in [&read["a"], &read["b"]["c"][0]] {
                let text = text.as_str().unwrap();
                assert!(long.starts_with(text) && text.len() > LONGEST_TEXT / 8, "{unit:?}: {}", text.len());
            }
        }
        let parts = vec!["}".repeat(LONGEST_TEXT - 1); 1 + MOST / LONGEST_TEXT];
        let mut stream = std::io::Cursor::new(serde_json::json!({"parts": parts}).to_string().into_bytes());
        let mut intake = Intake::default();
        while !intake.is_whole() {
            let length = stream.fill_buf().unwrap().len();
            intake.take(stream.fill_buf().unwrap());
            stream.consume(length);
        }
        assert_eq!(intake.kept.len(), MOST);
    }

    #[test]
    fn brackets_and_quotes_in_texts_end_nothing() {
        let text = br#" {"a\"}":"}{\\\"}","b":[{}, "\u007d\\"]} {"second":1}"#;
        assert_eq!(kept(text), serde_json::json!({"a\"}": "}{\\\"}", "b": [{}, "}\\"]}));
        assert_eq!(read(Box::new(std::io::Cursor::new(b"[{}] x".to_vec()))), b"[{}] x");
    }
}
