//! Recognises a process again, reused numbers and reboots notwithstanding.

use std::{fs, path::Path};

use crate::Error;

/// One running of one process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot: tells a reused number apart.
    pub start: u64,
    /// The boot it ran in.
    pub boot: String,
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Identifies the present boot of the machine.
pub fn boot_id() -> Result<String, Error> {
    match fs::read_to_string(BOOT_ID) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(e) => Err(Error::new("read", BOOT_ID, e)),
    }
}

impl Process {
    /// This process.
    pub fn current() -> Result<Self, Error> {
        Self::of(std::process::id())
    }

    /// The process that has the number `pid` now.
    pub fn of(pid: u32) -> Result<Self, Error> {
        let path = format!("/proc/{pid}/stat");
        let text = fs::read(&path).map_err(|e| Error::new("read", &path, e))?;
        match parse_start(&text) {
            Some(('Z' | 'X', _)) => {
                Err(Error::new("find the process of", Path::new(&path), std::io::ErrorKind::NotFound))
            }
            Some((_, start)) => Ok(Self { pid, start, boot: boot_id()? }),
            None => Err(Error::new("understand", Path::new(&path), std::io::ErrorKind::InvalidData)),
        }
    }

    /// True when this very process still runs. A zombie does not.
    ///
    /// False also where the system does not show it: another container's process, another boot.
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid).is_ok_and(|now| now == *self)
    }
}

/// The number of the process that started `pid`, and the name of `pid`'s program as the kernel keeps it (cut at 15
/// bytes); `None` where the system does not show it.
pub fn parent_and_name(pid: u32) -> Option<(u32, String)> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let begin = text.iter().position(|&b| b == b'(')?;
    let end = text.iter().rposition(|&b| b == b')')?;
    let name = String::from_utf8_lossy(text.get(begin + 1..end)?).into_owned();
    let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
    Some((rest.split_ascii_whitespace().nth(1)?.parse().ok()?, name))
}

/// State and start time (fields 3 and 22) of `/proc/<pid>/stat`. The second field is the program's name in
/// parentheses, which may itself hold blanks and parentheses: what counts is the last one.
fn parse_start(stat: &[u8]) -> Option<(char, u64)> {
    let end = stat.iter().rposition(|&b| b == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_who_started_it() {
        if Path::new("/proc/self/stat").exists() {
            let (parent, name) = parent_and_name(std::process::id()).expect("this process");
            assert_eq!(parent, std::os::unix::process::parent_id());
            assert!(!name.is_empty());
            assert_eq!(parent_and_name(u32::MAX), None);
        }
    }

    #[test]
    fn a_program_name_with_parentheses_does_not_shift_the_fields() {
        let line = b"7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 99 100";
        assert_eq!(parse_start(line), Some(('S', 4242)));
        assert_eq!(parse_start(b"7 (x) S 1"), None);
    }
}
