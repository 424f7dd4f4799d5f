//! The types of events that the host knows, as data. A type outside the table is refused for the whole log, unless the
//! event is marked as ignorable (004-20, TN53).

use std::sync::Arc;

/// The newest format that is read, and the only one that is written.
pub(super) const NEWEST: u64 = 4;
pub(super) const WRITTEN: u64 = 0;

/// One type of events.
#[derive(Debug)]
pub(super) struct Kind {
    name: &'static str,
    /// True for messages: they have a place on the surface.
    pub(super) surface: bool,
    /// Known in version 0.
    in_v0: bool,
    /// Known in versions 2 to 4, of which the sources tell less apart.
    later: bool,
}

const fn both(name: &'static str) -> Kind {
    Kind { name, surface: false, in_v0: true, later: true }
}

const fn message(name: &'static str) -> Kind {
    Kind { name, surface: true, in_v0: true, later: true }
}

const fn only_v0(name: &'static str) -> Kind {
    Kind { name, surface: false, in_v0: true, later: false }
}

const fn newer(name: &'static str, surface: bool) -> Kind {
    Kind { name, surface, in_v0: false, later: true }
}

/// Sorted by name.
static KINDS: &[Kind] = &[
    both("agent-preset/selected"),
    both("agent/inbox/spliced"),
    both("approval/asked"),
    both("approval/decided"),
    both("approval/policy"),
    newer("assistant/attempt", false),
    only_v0("assistant/chunk"),
    message("assistant/message"),
    both("command/done"),
    both("command/run"),
    both("compaction/end"),
    both("compaction/prune"),
    both("compaction/start"),
    both("compaction/summary"),
    newer("deliverables/presented", false),
    newer("developer/message", true),
    newer("feedback/message-delete", false),
    newer("feedback/message-put", false),
    both("feedback/record"),
    both("goal/change"),
    both("hook/invoked"),
    both("hook/result"),
    newer("image/offload", false),
    both("llm/retry"),
    both("llm/retry-started"),
    newer("model/selection", false),
    both("permission/preset"),
    both("plan/mode"),
    both("request/context"),
    both("request/header"),
    both("sandbox/mode"),
    both("schedule/change"),
    newer("session-log-deepseek/delivery-accepted", false),
    both("session/end-seed"),
    both("session/title"),
    both("session/title-llm-request"),
    both("step/end"),
    both("step/start"),
    newer("subagent/catalog", false),
    both("subagent/descriptor"),
    newer("subagent/model-selection-policy", false),
    newer("system/message", true),
    both("team/member"),
    both("team/message/delivered"),
    both("team/message/queued"),
    both("team/task"),
    both("todo/write"),
    both("tool-workflow/agent-end"),
    both("tool-workflow/agent-start"),
    both("tool-workflow/run-end"),
    both("tool-workflow/run-start"),
    both("tool/call"),
    only_v0("tool/code-dispatch"),
    only_v0("tool/code-dispatch-start"),
    newer("tool/ptc-dispatch", false),
    newer("tool/ptc-dispatch-start", false),
    message("tool/result"),
    both("turn/end"),
    both("turn/start"),
    message("user/message"),
    both("web/deepseek-search-llm-request"),
    newer("workspace/changes", false),
];

/// What is known of a type in this version of the format.
pub(super) fn kind(name: &str, version: u64) -> Option<&'static Kind> {
    let at = KINDS.binary_search_by(|kind| kind.name.cmp(name)).ok()?;
    KINDS.get(at).filter(|kind| if version == 0 { kind.in_v0 } else { kind.later })
}

/// Names of types, each kept once: a log has many events and few types.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Vec<Arc<str>>);

impl Names {
    /// Names beyond this many are not kept: a log that makes up types must not fill the memory.
    const MOST: usize = 128;

    pub(super) fn get(&mut self, name: &str) -> Arc<str> {
        match self.0.binary_search_by(|known| (**known).cmp(name)) {
            Ok(at) => Arc::clone(&self.0[at]),
            Err(at) => {
                let new: Arc<str> = name.into();
                if self.0.len() < Self::MOST {
                    self.0.insert(at, Arc::clone(&new));
                }
                new
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_0_has_48_types_of_which_3_are_messages() {
        assert!(KINDS.is_sorted_by_key(|kind| kind.name));
        assert_eq!(KINDS.iter().filter(|kind| kind.in_v0).count(), 48);
        assert_eq!(KINDS.iter().filter(|kind| kind.in_v0 && kind.surface).count(), 3);
        assert!(kind("assistant/chunk", 4).is_none() && kind("system/message", 0).is_none());
        assert!(kind("x-probe/event", 0).is_none() && kind("request/header-delta", 0).is_none());
    }
}
