//! What the model is told of the two tools, as text that never changes: marks and folds must not move the prefix of a
//! request (001-08).

use crate::{SessionKey, fold::FoldError};

/// Default name of the tool that marks (001-07).
pub const CHECKPOINT_TOOL: &str = "checkpoint";
/// Default name of the tool that folds.
pub const REWIND_TOOL: &str = "rewind";
/// Name of the standing section of the system prompt.
pub const PROMPT_SECTION: &str = "tool:checkpoint";
/// Its place among the sections.
pub const PROMPT_ORDER: u32 = 150;

/// The standing section, for tools of these names.
pub fn prompt_section(checkpoint: &str, rewind: &str) -> String {
    format!(
        "Call `{checkpoint}` before an investigation that will take several tool calls and whose details you will not \
         need afterwards. When you know what you wanted to know, and before you finish the turn, call `{rewind}`: it \
         replaces everything since the mark by a short report. Files stay as they are."
    )
}

/// The session of a tool call; a call from outside any session is an error (TM36).
pub fn session_of(session: Option<&SessionKey>) -> Result<&SessionKey, FoldError> {
    session.ok_or(FoldError::NoSession)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tm36_without_a_session_both_tools_fail() {
        assert_eq!(session_of(None).unwrap_err().code(), "NO_SESSION");
        assert_eq!(session_of(Some(&SessionKey::local())).unwrap(), &SessionKey::local());
    }

    /// TM33 and TM34 need a host's registry and cards; that the text does not depend on anything else is ours.
    #[test]
    fn c001_07_the_prompt_section_names_the_configured_tools() {
        let text = prompt_section("mark_here", REWIND_TOOL);
        assert!(text.contains("`mark_here`") && text.contains("`rewind`"));
        assert_eq!(text, prompt_section("mark_here", REWIND_TOOL));
    }
}
