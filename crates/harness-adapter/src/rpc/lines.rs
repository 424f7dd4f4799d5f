//! Lines of a pipe, none of them kept whole when it is too long.

use std::io::{self, BufRead};

/// What was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Line {
    /// A line without its newline.
    Whole(Vec<u8>),
    /// A line of more bytes than allowed; it was passed over.
    TooLong,
    /// What is left at the end of the stream without a newline: whoever wrote it died in the middle.
    Torn,
}

/// The next line; `None` at the end.
pub(crate) fn next_line(input: &mut dyn BufRead, max: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let (mut any, mut too_long) = (false, false);
    loop {
        let piece = match input.fill_buf() {
            Ok(piece) => piece,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if piece.is_empty() {
            return Ok(any.then_some(Line::Torn));
        }
        any = true;
        let end = piece.iter().position(|&byte| byte == b'\n');
        let (part, used) = match end {
            Some(at) => (piece.get(..at).unwrap_or_default(), at + 1),
            None => (piece, piece.len()),
        };
        if too_long || line.len() + part.len() > max {
            too_long = true;
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        input.consume(used);
        if end.is_some() {
            return Ok(Some(if too_long { Line::TooLong } else { Line::Whole(line) }));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8], max: usize, buffer: usize) -> Vec<Line> {
        let mut input = BufReader::with_capacity(buffer, bytes);
        std::iter::from_fn(|| next_line(&mut input, max).unwrap()).collect()
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_next_one_is_read() {
        let whole = |text: &str| Line::Whole(text.into());
        assert_eq!(all(b"abc\nabcd\n\nx", 3, 2), [whole("abc"), Line::TooLong, whole(""), Line::Torn]);
        assert_eq!(all(b"", 3, 2), []);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_arrive(
            lines in proptest::collection::vec(proptest::collection::vec(any::<u8>().prop_filter("newline", |b| *b != b'\n'), 0..9), 0..6),
            buffer in 1usize..9,
        ) {
            let bytes: Vec<u8> = lines.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect();
            let expected: Vec<Line> = lines
                .into_iter()
                .map(|line| if line.len() > 4 { Line::TooLong } else { Line::Whole(line) })
                .collect();
            prop_assert_eq!(all(&bytes, 4, buffer), expected);
        }
    }
}
