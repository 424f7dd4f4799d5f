//! The file as a whole: lines of ours among whatever else is there (003-05).

use std::collections::BTreeSet;

use super::{Line, parse_line};

/// Lines that are kept unless said otherwise.
pub const DEFAULT_LIMIT: usize = 200;

/// Every line in the present format, in the order of the file.
pub fn lines(file: &[u8]) -> Vec<Line> {
    file.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

/// The file with one line more at its end, and without the lines that are too many then.
///
/// Automatic lines go first, then the oldest of the named ones (deviation 9), so that noise never evicts a name: an
/// automatic line for which there is no room among the named ones is itself what goes. Everything that is no such
/// line stays where it is, byte for byte.
pub fn append(file: &[u8], line: &Line, limit: usize) -> Vec<u8> {
    let mut text = file.to_vec();
    if text.last().is_some_and(|&byte| byte != b'\n') {
        text.push(b'\n');
    }
    text.extend_from_slice(line.to_string().as_bytes());
    text.push(b'\n');
    let pieces: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let ours: Vec<(usize, Line)> = pieces
        .iter()
        .enumerate()
        .filter_map(|(at, piece)| Some((at, parse_line(piece.strip_suffix(b"\n").unwrap_or(piece))?)))
        .collect();
    let (automatic, named): (Vec<_>, Vec<_>) = ours.iter().partition(|(_, line)| line.is_automatic());
    let too_many = ours.len().saturating_sub(limit);
    let going: BTreeSet<usize> = automatic.into_iter().chain(named).map(|(at, _)| *at).take(too_many).collect();
    let stays = pieces.iter().enumerate().filter(|(at, _)| !going.contains(at));
    stays.flat_map(|(_, piece)| piece.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use checkpoint_core::Seq;

    use super::*;
    use crate::named_points::AUTO_TURN;

    fn line(label: &str, seq: u64) -> Line {
        let time = format!("2026-11-30T14:05:{:02}.000Z", seq % 60);
        Line { time, label: label.into(), session: "s".into(), seq: Seq(seq), note: None }
    }

    fn labels(file: &[u8]) -> Vec<(String, u64)> {
        lines(file).into_iter().map(|line| (line.label, line.seq.0)).collect()
    }

    #[test]
    fn c003_05_what_is_not_ours_stays_in_place() {
        let prose = "# Checkpoints\n\n- old style: before refactoring\n<!-- keep -->\n";
        let mut file = prose.as_bytes().to_vec();
        for n in 0..4 {
            file = append(&file, &line("n", n), 3);
            if n == 1 {
                file.extend_from_slice(b"between \xff\r\n");
            }
        }
        let text = String::from_utf8_lossy(&file);
        assert!(text.starts_with(prose), "{text}");
        assert_eq!(labels(&file), [("n".into(), 1), ("n".into(), 2), ("n".into(), 3)]);
        let between = file.windows(10).position(|part| part == b"between \xff\r").unwrap();
        let first = file.windows(5).position(|part| part == b"seq=1").unwrap();
        let second = file.windows(5).position(|part| part == b"seq=2").unwrap();
        assert!(first < between && between < second);
    }

    #[test]
    fn tq07_automatic_lines_never_evict_named_ones() {
        let mut file = Vec::new();
        for (label, seq) in [("a", 1), (AUTO_TURN, 2), ("b", 3), (AUTO_TURN, 4)] {
            file = append(&file, &line(label, seq), 3);
        }
        assert_eq!(labels(&file), [("a".into(), 1), ("b".into(), 3), (AUTO_TURN.into(), 4)]);
        file = append(&file, &line("c", 5), 3);
        assert_eq!(labels(&file), [("a".into(), 1), ("b".into(), 3), ("c".into(), 5)]);
        // No room: the automatic line itself is what goes.
        assert_eq!(append(&file, &line(AUTO_TURN, 6), 3), file);
        // Then the oldest of the named ones.
        assert_eq!(labels(&append(&file, &line("d", 7), 3))[0], ("b".into(), 3));
    }

    /// With a search for every line among those that go this would not end.
    #[test]
    fn c003_05_a_file_with_far_too_many_lines_is_cut_down_at_once() {
        let many: String =
            (0..100_000).map(|n| line("n", n)).fold(String::new(), |text, line| text + &line.to_string() + "\n");
        let file = append(many.as_bytes(), &line("last", 1), 200);
        assert_eq!(lines(&file).len(), 200);
        assert_eq!(labels(&file).last(), Some(&("last".into(), 1)));
    }

    #[test]
    fn a_last_line_without_its_newline_is_not_joined() {
        let file = append(b"prose", &line("a", 1), 9);
        assert!(file.starts_with(b"prose\n- ["));
        let unfinished = line("z", 2).to_string();
        let file = append(unfinished.as_bytes(), &line("a", 3), 9);
        assert_eq!(labels(&file), [("z".into(), 2), ("a".into(), 3)]);
        assert_eq!(lines(b""), []);
    }
}
