//! The agents whose hooks rwd uses: one list for what installs hooks and for what reads their reports, since the name in
//! `rwd hook NAME` has to be the same in both.

/// A harness whose hooks call `rwd hook NAME`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Agent {
    /// Claude Code, and what runs hooks of its format.
    Claude,
    /// `OpenAI` Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode, through a plugin.
    Opencode,
    /// Cursor.
    Cursor,
    /// Cline.
    Cline,
}

impl Agent {
    /// All, in the order they are told.
    pub const ALL: [Self; 6] = [Self::Claude, Self::Codex, Self::Gemini, Self::Opencode, Self::Cursor, Self::Cline];

    /// The name on the command line and in session keys.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Cursor => "cursor",
            Self::Cline => "cline",
        }
    }

    /// The name that its makers give it, for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Cursor => "Cursor",
            Self::Cline => "Cline",
        }
    }

    /// The harness of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }
}
