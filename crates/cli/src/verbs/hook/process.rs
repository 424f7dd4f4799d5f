//! The process of the harness that called the hook: a turn counts as interrupted when it is gone (design § 2).

use checkpoint_core::ProcessId;
use harness_adapter::hooks::HookEvent;

/// What stands between a harness and its hook.
const BETWEEN: [&str; 14] =
    ["sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "busybox", "env", "timeout", "nice", "xargs", "sudo", "setsid"];
/// So many of them are passed.
const FAR: usize = 12;

/// The nearest process above this one that is no shell; the one that the payload names, where it does.
pub(super) fn of_harness(event: &HookEvent) -> Option<ProcessId> {
    if let Some(told) = event.pid.and_then(identified) {
        return Some(told);
    }
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..FAR {
        let (parent, name) = durable_fs::parent_and_name(pid)?;
        if !BETWEEN.contains(&name.trim_start_matches('-')) {
            return identified(pid);
        }
        pid = parent;
    }
    None
}

fn identified(pid: u32) -> Option<ProcessId> {
    let known = durable_fs::Process::of(pid).ok()?;
    Some(ProcessId { pid: known.pid, started: known.start, boot: known.boot })
}
