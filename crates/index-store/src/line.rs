//! One line of `index.jsonl`: a batch of rows with its checksum.
//!
//! `{"crc":"9ae0daaf","format":"1.0","revision":7,"rows":[{"table":"name","key":"a","document":{…}},…]}` and a newline.
//! The checksum covers every byte after the comma that follows it, up to the newline. A row without `document`, or with
//! `null`, is removed. JSON text as written here holds no newline and no NUL byte.

use crate::{
    format::Format,
    scan::{elements, members},
    tree::Tree,
};

const HEAD: &[u8] = b"{\"crc\":\"";
/// `{"crc":"xxxxxxxx",`
const COVERED_FROM: usize = 18;

/// A row as a line has it.
#[derive(Debug, PartialEq)]
pub(crate) struct LineRow {
    pub(crate) table: String,
    pub(crate) key: String,
    /// The document as it was written; `None` for a row that is removed.
    pub(crate) document: Option<String>,
}

/// A line that was read.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) format: Format,
    pub(crate) revision: u64,
    pub(crate) rows: Vec<LineRow>,
}

/// Why a line cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error("it does not begin with a checksum")]
    NoChecksum,
    #[error("its checksum is {found:08x}, not {expected:08x}")]
    Checksum { expected: u32, found: u32 },
    #[error("it follows revision {before} but is revision {found}")]
    Sequence { before: u64, found: u64 },
    #[error("its format cannot be read")]
    Format(#[from] crate::format::NoFormat),
    #[error("it is no batch of rows")]
    Shape,
    #[error("it is no batch of rows")]
    Json(#[from] serde_json::Error),
    /// Whole and of another major version, so not damaged.
    #[error("its format is {0}")]
    Foreign(Format),
}

/// Writes a line, newline included.
pub(crate) fn write<'a>(
    format: Format,
    revision: u64,
    rows: impl Iterator<Item = (&'a str, &'a str, Option<&'a str>)>,
) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = Vec::with_capacity(512);
    line.extend_from_slice(b"{\"crc\":\"00000000\",\"format\":");
    serde_json::to_writer(&mut line, &format.to_string())?;
    line.extend_from_slice(format!(",\"revision\":{revision},\"rows\":[").as_bytes());
    for (n, (table, key, document)) in rows.enumerate() {
        line.extend_from_slice(if n == 0 { b"{\"table\":" } else { b",{\"table\":" });
        serde_json::to_writer(&mut line, table)?;
        line.extend_from_slice(b",\"key\":");
        serde_json::to_writer(&mut line, key)?;
        if let Some(document) = document {
            line.extend_from_slice(b",\"document\":");
            line.extend_from_slice(document.as_bytes());
        }
        line.push(b'}');
    }
    line.extend_from_slice(b"]}");
    let sum = crc32fast::hash(&line[COVERED_FROM..]);
    line[HEAD.len()..HEAD.len() + 8].copy_from_slice(format!("{sum:08x}").as_bytes());
    line.push(b'\n');
    Ok(line)
}

/// Reads a line, given without its newline.
pub(crate) fn read(line: &[u8]) -> Result<Line, LineError> {
    let expected = line
        .strip_prefix(HEAD)
        .and_then(|rest| rest.get(..10))
        .filter(|rest| rest.ends_with(b"\","))
        .and_then(|rest| std::str::from_utf8(&rest[..8]).ok())
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .ok_or(LineError::NoChecksum)?;
    let found = crc32fast::hash(&line[COVERED_FROM..]);
    if expected != found {
        return Err(LineError::Checksum { expected, found });
    }
    let fields = members(line).ok_or(LineError::Shape)?;
    let field = |name: &[u8]| find(&fields, name).ok_or(LineError::Shape);
    let format: Format = serde_json::from_slice::<String>(field(b"\"format\"")?)?.parse()?;
    // What else a line of another major version holds is not for us to say.
    if format.check().is_err() {
        return Err(LineError::Foreign(format));
    }
    let revision = serde_json::from_slice(field(b"\"revision\"")?)?;
    let rows = elements(field(b"\"rows\"")?).ok_or(LineError::Shape)?;
    let rows = rows.into_iter().map(row).collect::<Result<_, _>>()?;
    Ok(Line { format, revision, rows })
}

fn row(text: &[u8]) -> Result<LineRow, LineError> {
    let fields = members(text).ok_or(LineError::Shape)?;
    let field = |name: &[u8]| find(&fields, name).ok_or(LineError::Shape);
    let document = find(&fields, b"\"document\"")
        .filter(|document| *document != b"null")
        .map(|document| String::from_utf8(document.to_vec()));
    Ok(LineRow {
        table: serde_json::from_slice(field(b"\"table\"")?)?,
        key: serde_json::from_slice(field(b"\"key\"")?)?,
        document: document.transpose().map_err(|_| LineError::Shape)?,
    })
}

/// The value under a name, which is given as it is written.
fn find<'a>(fields: &[(&[u8], &'a [u8])], name: &[u8]) -> Option<&'a [u8]> {
    fields.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
}

impl Line {
    /// Applies the rows.
    pub(crate) fn apply(self, tree: &mut Tree) {
        tree.format = tree.format.max(self.format);
        for row in self.rows {
            tree.set(&row.table, &row.key, row.document);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_and_no_flipped_bit_passes() {
        let rows = [("name", "a\n\"", Some("{\"x\":1}")), ("held", "b", None)];
        let line = write(Format::CURRENT, 7, rows.into_iter()).unwrap();
        assert_eq!(line.iter().position(|&b| b == b'\n'), Some(line.len() - 1));
        let line = &line[..line.len() - 1];
        let back = read(line).unwrap();
        assert_eq!((back.revision, back.rows.len()), (7, 2));
        assert_eq!(back.rows[0].document.as_deref().unwrap(), "{\"x\":1}");
        for at in 0..line.len() {
            for bit in [0x01, 0x20] {
                let mut bad = line.to_vec();
                bad[at] ^= bit;
                // Hexadecimal digits may be of either case.
                let same = at >= HEAD.len() && at < HEAD.len() + 8 && bad[at].eq_ignore_ascii_case(&line[at]);
                assert!(same || read(&bad).is_err(), "byte {at}");
            }
        }
    }
}
