//! Names of the directories that the host keeps logs in: a function of the working directory and the session's id.
//!
//! Both work on UTF-16 code units, as the host does, so that a lone surrogate keeps its place.

use std::fmt::Write as _;

use checkpoint_core::JsonText;

/// The directory of sessions whose header names no working directory.
pub(super) const NO_CWD: &str = "_no-cwd";

/// Units of a project key that are kept, before the `--` around them.
const LONGEST_KEY: usize = 251;

fn plain(unit: u16) -> Option<char> {
    char::from_u32(u32::from(unit)).filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

fn push(text: &mut String, unit: u16) {
    match plain(unit) {
        Some(c) => text.push(c),
        None => {
            // Writing to a text cannot fail.
            let _ = write!(text, "~{unit:04X}");
        }
    }
}

/// The project directory of a working directory: lossy on purpose, different ones may share it.
///
/// A run of `/`, `\` and `:` becomes one `-`; letters, digits, `.`, `_` and `-` stay; any other code unit becomes `~` and
/// four upper-case hexadecimal digits. Leading `-` go, an empty rest is `root`, the first 251 characters stay, and `--`
/// goes around them. `None` for an empty text.
pub fn project_key(cwd: &JsonText) -> Option<String> {
    if cwd.is_empty() {
        return None;
    }
    let mut key = String::new();
    let mut in_run = false;
    for &unit in cwd.units() {
        let separator = [u16::from(b'/'), u16::from(b'\\'), u16::from(b':')].contains(&unit);
        if !separator {
            push(&mut key, unit);
        } else if !in_run {
            key.push('-');
        }
        in_run = separator;
    }
    let key = key.trim_start_matches('-');
    // Everything in a key is ASCII: a character is a code unit and a byte.
    let key = if key.is_empty() { "root" } else { key.get(..LONGEST_KEY).unwrap_or(key) };
    Some(format!("--{key}--"))
}

/// The directory of a session, or any other single name: injective. `None` for an empty text.
///
/// Letters, digits, `.`, `_` and `-` stay, any other code unit becomes `~` and four upper-case hexadecimal digits; `.`
/// and `..` are written in digits altogether, so that no id can leave its directory.
pub fn encode_segment(id: &JsonText) -> Option<String> {
    let mut segment = String::new();
    for &unit in id.units() {
        push(&mut segment, unit);
    }
    match segment.as_str() {
        "" => None,
        "." => Some("~002E".into()),
        ".." => Some("~002E~002E".into()),
        _ => Some(segment),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(cwd: &str) -> String {
        project_key(&cwd.into()).unwrap()
    }

    #[test]
    fn projects_are_named_as_by_the_host() {
        assert_eq!(key("/home/user/shop"), "--home-user-shop--");
        assert_eq!(key("//"), "--root--");
        assert_eq!(key(&"é".repeat(80)).len(), 255);
        assert_eq!(project_key(&JsonText::default()), None);
    }

    #[test]
    fn tn46_no_id_leaves_its_directory() {
        for (id, segment) in
            [("..", "~002E~002E"), (".", "~002E"), ("../x", "..~002Fx"), ("a/b", "a~002Fb"), ("\0", "~0000")]
        {
            assert_eq!(encode_segment(&id.into()).unwrap(), segment);
        }
        assert_eq!(encode_segment(&JsonText::default()), None);
    }
}
