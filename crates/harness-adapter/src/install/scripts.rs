//! Hooks that are files of their own: the plugin of opencode and the scripts of Cline.

use super::command::{self, hook_command};
use crate::agent::Agent;

/// The first line of a script's own comment; a file that holds it is ours.
const MARK: &str = "Written by `rwd init`; `rwd uninstall` removes it.";

/// True for a script that rwd wrote.
pub fn is_ours(text: &str) -> bool {
    text.contains(MARK)
}

/// The program that a script of ours runs.
pub fn program_of(text: &str) -> Option<String> {
    for line in text.lines() {
        if let Some(quoted) = line.strip_prefix("const PROGRAM = ").and_then(|rest| rest.strip_suffix(';')) {
            return serde_json::from_str(quoted).ok();
        }
        if let Some(program) = command::program_of(line, Agent::Cline) {
            return Some(program.to_owned());
        }
    }
    None
}

/// What Cline calls; each is a file of that name.
pub(crate) const CLINE_EVENTS: [&str; 8] = [
    "TaskStart",
    "TaskResume",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "TaskComplete",
    "TaskCancel",
    "TaskError",
];

/// A script of Cline. Its path is checked before: see [`hook_command`].
pub(crate) fn cline(program: &str) -> String {
    let command = hook_command(program, Agent::Cline).unwrap_or_else(|_| "exit 0".to_owned());
    format!("#!/bin/sh\n# {MARK}\n{command}\n")
}

/// The plugin of opencode. It may not throw: from `chat.message` that ends the run, and after a tool it replaces the
/// tool's result. It waits where the agent must not go on: at a prompt and before a tool.
pub(crate) fn opencode(program: &str) -> String {
    let program = serde_json::Value::from(program).to_string();
    let mark = MARK;
    format!(
        r#"// {mark}
// It hands what happens to `rwd hook opencode` as JSON on standard input, and never throws.
import {{ spawn }} from "node:child_process";

const PROGRAM = {program};
// Milliseconds opencode waits for a hook at most. A capture gives up long before.
const LIMIT = 20000;

function tell(payload) {{
  return new Promise((resolve) => {{
    try {{
      const child = spawn(PROGRAM, ["hook", "opencode"], {{
        stdio: ["pipe", "pipe", "ignore"],
        cwd: payload.directory || undefined,
      }});
      let answer = "";
      const end = setTimeout(() => resolve(""), LIMIT);
      const done = (text) => {{
        clearTimeout(end);
        resolve(text);
      }};
      child.on("error", () => done(""));
      child.stdin.on("error", () => {{}});
      child.stdout.on("data", (chunk) => {{
        answer += chunk;
      }});
      child.on("close", () => done(answer));
      child.stdin.end(JSON.stringify(payload) + "\n");
    }} catch {{
      resolve("");
    }}
  }});
}}

function read(answer) {{
  try {{
    return JSON.parse(answer) || {{}};
  }} catch {{
    return {{}};
  }}
}}

export const RwdPlugin = async ({{ directory, worktree }}) => {{
  const send = (hook, more) => tell({{ hook, directory, worktree, pid: process.pid, ...more }});
  return {{
    "chat.message": async (input, output) => {{
      try {{
        const message = output?.message ?? {{}};
        const parts = Array.isArray(output?.parts) ? output.parts : [];
        const answer = read(
          await send("chat.message", {{
            sessionID: input?.sessionID ?? message.sessionID,
            messageID: message.id ?? input?.messageID,
          }}),
        );
        if (typeof answer.note === "string" && answer.note !== "" && message.id) {{
          parts.push({{
            id: "prt_" + Date.now().toString(16) + Math.random().toString(36).slice(2, 14),
            sessionID: message.sessionID,
            messageID: message.id,
            type: "text",
            text: answer.note,
            synthetic: true,
          }});
        }}
      }} catch {{}}
    }},
    "tool.execute.before": async (input, output) => {{
      let veto;
      try {{
        const answer = read(
          await send("tool.execute.before", {{
            sessionID: input?.sessionID,
            callID: input?.callID,
            tool: input?.tool,
            args: output?.args,
          }}),
        );
        if (typeof answer.deny === "string" && answer.deny !== "") veto = answer.deny;
      }} catch {{}}
      // The one throw there is: asked for by `on_capture_failure = block`; opencode fails this tool with its text.
      if (veto) throw new Error(veto);
    }},
    "tool.execute.after": async (input) => {{
      try {{
        await send("tool.execute.after", {{ sessionID: input?.sessionID, callID: input?.callID, tool: input?.tool }});
      }} catch {{}}
    }},
    event: async (input) => {{
      try {{
        const event = input?.event ?? {{}};
        if (!["session.created", "session.idle", "session.deleted"].includes(event.type)) return;
        const properties = event.properties ?? {{}};
        const info = properties.info ?? {{}};
        await send("event", {{
          type: event.type,
          sessionID: properties.sessionID ?? info.id,
          parentID: info.parentID,
        }});
      }} catch {{}}
    }},
  }};
}};
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_known_again_and_name_their_program() {
        for program in ["rwd", "/opt/a b/rwd"] {
            let (cline, opencode) = (cline(program), opencode(program));
            assert!(is_ours(&cline) && is_ours(&opencode));
            assert_eq!(
                [program_of(&cline), program_of(&opencode)],
                [Some(program.to_owned()), Some(program.to_owned())]
            );
            assert!(cline.starts_with("#!/bin/sh\n") && cline.contains(program) && cline.ends_with("|| exit 0'\n"));
            assert!(opencode.contains(&format!("const PROGRAM = \"{program}\";")));
        }
        assert!(!is_ours("#!/bin/sh\nrwd hook cline\n"));
    }
}
