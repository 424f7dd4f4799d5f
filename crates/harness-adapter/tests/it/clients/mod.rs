//! Logs of Claude Code, Codex, Gemini CLI and opencode, made up in the shapes that the clients write.

mod attacks;
mod forks;
mod keys;
mod opencode;
