//! Logs of Claude Code, Codex and Gemini CLI, made up in the shapes that the clients write.

mod forks;
mod keys;
