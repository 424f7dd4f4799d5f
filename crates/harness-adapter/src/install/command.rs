//! The command line that a hook runs.
//!
//! Gemini CLI refuses a prompt when a hook ends with 2 or more, 127 for a missing program included: rwd that was removed
//! would make the agent useless. So every hook asks first whether the program is there, and ends with 0 whatever comes
//! of it. A veto is said on standard output, never by the exit code.
//!
//! Codex trusts a hook by a hash of this text: it must stay the same over versions of rwd.

use crate::agent::Agent;

/// Bytes that stand for themselves inside the quotes of the command.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._-+@:,=%^~".contains(c) || (!c.is_ascii() && !c.is_control())
}

/// A program that no hook can name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a hook cannot run {program:?}: {why}")]
pub struct BadBinary {
    /// The path or name.
    pub program: String,
    /// Why not.
    pub why: &'static str,
}

/// The command of the hooks of `agent`. `program`: `rwd`, to be looked up each time, or an absolute path.
///
/// # Errors
/// [`BadBinary`] for a program that is not called `rwd`, or whose path is relative or would need quoting.
pub fn hook_command(program: &str, agent: Agent) -> Result<String, BadBinary> {
    let bad = |why| BadBinary { program: program.to_owned(), why };
    if program.rsplit('/').next() != Some("rwd") {
        return Err(bad("the program must be called rwd, so that its hooks are found again"));
    }
    if program != "rwd" && !program.starts_with('/') {
        return Err(bad("the path must be absolute"));
    }
    if !program.chars().all(|c| is_plain(c) || c == ' ') {
        return Err(bad("its path holds characters that a shell reads differently"));
    }
    let word = if program.contains(' ') { format!("\"{program}\"") } else { program.to_owned() };
    Ok(format!("sh -c 'command -v {word} >/dev/null 2>&1 && {word} hook {} || exit 0'", agent.name()))
}

/// The program that a command of ours runs, if it is exactly what [`hook_command`] makes.
pub(crate) fn program_of(command: &str, agent: Agent) -> Option<&str> {
    let rest = command.strip_prefix("sh -c 'command -v ")?;
    let (word, _) = rest.split_once(" >/dev/null")?;
    let program = word.trim_matches('"');
    (hook_command(program, agent).as_deref() == Ok(command)).then_some(program)
}

/// True for a command that runs `rwd hook AGENT` in whatever way: also one that was typed by hand.
pub(crate) fn is_ours(command: &str, agent: Agent) -> bool {
    let told = format!("hook {}", agent.name());
    command.match_indices(&told).any(|(at, _)| {
        let ends = command.get(at + told.len()..).unwrap_or_default();
        let whole = !ends.starts_with(|c: char| c.is_ascii_alphanumeric() || "-_.".contains(c));
        let before = command.get(..at).unwrap_or_default().trim_end().trim_end_matches(['"', '\'']);
        let name = before.strip_suffix("rwd");
        whole && name.is_some_and(|rest| !rest.ends_with(|c: char| c.is_ascii_alphanumeric() || "-_.".contains(c)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_its_program_and_is_known_again() {
        for program in ["rwd", "/usr/local/bin/rwd", "/opt/a b/rwd", "/é/rwd"] {
            let command = hook_command(program, Agent::Gemini).unwrap();
            assert_eq!(program_of(&command, Agent::Gemini), Some(program), "{command}");
            assert!(is_ours(&command, Agent::Gemini) && !is_ours(&command, Agent::Claude), "{command}");
            assert!(command.ends_with("|| exit 0'"), "{command}");
        }
        for program in ["/x/it's/rwd", "/x/$y/rwd", "x/rwd", "/x/rewind", "/x\n/rwd", "/x\"/rwd", "/x`/rwd"] {
            assert!(hook_command(program, Agent::Claude).is_err(), "{program}");
        }
    }

    #[test]
    fn a_command_typed_by_hand_is_ours_and_one_that_looks_alike_is_not() {
        for ours in ["rwd hook claude", "/x/rwd hook claude --json", "FOO=1 \"/a b/rwd\" hook claude; true"] {
            assert!(is_ours(ours, Agent::Claude) && program_of(ours, Agent::Claude).is_none(), "{ours}");
        }
        for other in
            ["forwrd hook claude", "rwd hook claude-next", "xrwd hook claude", "echo hook claude", "rwd status"]
        {
            assert!(!is_ours(other, Agent::Claude), "{other}");
        }
    }
}
