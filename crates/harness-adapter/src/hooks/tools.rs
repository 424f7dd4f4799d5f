//! What tools do to files. Only those that surely change none are listed: everything else is taken to change some.

use super::Agent;

/// What a tool can do to files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Nothing.
    Reads,
    /// It runs programs: they can do anything, also later.
    Runs,
    /// Anything else.
    Writes,
}

/// Tools that change no file, by harness.
const READERS: &[(Agent, &[&str])] = &[
    (
        Agent::Claude,
        &[
            "Read",
            "Glob",
            "Grep",
            "LS",
            "NotebookRead",
            "WebFetch",
            "WebSearch",
            "TodoWrite",
            "TodoRead",
            "TaskCreate",
            "TaskUpdate",
            "TaskGet",
            "TaskList",
            "TaskOutput",
            "BashOutput",
            "AskUserQuestion",
            "EnterPlanMode",
            "ToolSearch",
            "ListMcpResourcesTool",
            "ReadMcpResourceTool",
        ],
    ),
    (
        Agent::Codex,
        &[
            "update_plan",
            "view_image",
            "web_search",
            "read_file",
            "list_dir",
            "grep_files",
            "request_user_input",
            "list_mcp_resources",
            "list_mcp_resource_templates",
            "read_mcp_resource",
        ],
    ),
    (
        Agent::Gemini,
        &[
            "read_file",
            "read_many_files",
            "list_directory",
            "glob",
            "search_file_content",
            "grep_search",
            "google_web_search",
            "web_fetch",
            "write_todos",
            "ask_user",
        ],
    ),
    (
        Agent::Opencode,
        &[
            "read",
            "glob",
            "grep",
            "list",
            "ls",
            "webfetch",
            "websearch",
            "codesearch",
            "todowrite",
            "todoread",
            "question",
            "invalid",
        ],
    ),
    (
        Agent::Cursor,
        &["Read", "Glob", "Grep", "LS", "SemanticSearch", "ReadLints", "WebFetch", "WebSearch", "TodoWrite"],
    ),
    (
        Agent::Cline,
        &[
            "read_file",
            "list_files",
            "search_files",
            "list_code_definition_names",
            "ask_followup_question",
            "plan_mode_respond",
            "web_fetch",
            "web_search",
            "access_mcp_resource",
            "load_mcp_documentation",
        ],
    ),
];

/// Tools that run programs, whatever the harness.
const RUNNERS: [&str; 10] = [
    "Bash",
    "bash",
    "PowerShell",
    "Shell",
    "shell",
    "exec_command",
    "write_stdin",
    "run_shell_command",
    "execute_command",
    "run_commands",
];

/// What the tool of that name can do.
pub fn effect(agent: Agent, name: &str) -> Effect {
    let reads = READERS.iter().any(|(of, names)| *of == agent && names.contains(&name));
    if reads {
        Effect::Reads
    } else if RUNNERS.contains(&name) {
        Effect::Runs
    } else {
        Effect::Writes
    }
}
