//! The payload on standard input.

use std::io::BufRead;
use std::sync::mpsc;
use std::time::Duration;

/// Nothing longer is read: it holds what a tool is given and what it gave.
const MOST: usize = 64 << 20;
/// A harness writes the payload at once. One that leaves the stream open is not waited for.
const WAIT: Duration = Duration::from_secs(5);

/// Reads one JSON value, or up to the end, for as long as is sensible.
pub(super) fn read(mut stdin: Box<dyn BufRead + Send>) -> Vec<u8> {
    let (send, received) = mpsc::channel();
    // Left to itself when it does not end: the process is about to.
    let reader = std::thread::Builder::new().spawn(move || {
        let mut payload = Vec::new();
        loop {
            match stdin.fill_buf() {
                Ok([]) => break,
                Ok(bytes) => {
                    let length = bytes.len();
                    payload.extend_from_slice(bytes);
                    stdin.consume(length);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
            if payload.len() > MOST || is_whole(&payload) {
                break;
            }
        }
        // Nobody waits any more if this fails.
        drop(send.send(payload));
    });
    match reader {
        Ok(_) => received.recv_timeout(WAIT).unwrap_or_default(),
        Err(error) => {
            tracing::warn!(%error, "the payload cannot be read");
            Vec::new()
        }
    }
}

/// True for a complete object: some harnesses send a line end after it, none sends more.
fn is_whole(payload: &[u8]) -> bool {
    payload.trim_ascii_end().ends_with(b"}") && serde_json::from_slice::<serde::de::IgnoredAny>(payload).is_ok()
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
        assert_eq!(read(Box::new(std::io::Cursor::new(b"{\"a\":".to_vec()))), b"{\"a\":");
    }
}
