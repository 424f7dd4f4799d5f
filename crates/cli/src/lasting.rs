//! A process that stays for days gives back the memory that it does not need.
//!
//! The C library keeps what was freed: an arena for each thread that ever allocated at once, and, after a large block
//! was freed, up to twice its size at the end of the heap. Of a sidecar that was 26 MB after 1,500 turns, with limits 6
//! (docs/performance.md). The limits are read when a process starts, so it starts itself once more with them.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::world::World;

/// Where the GNU C library looks for its settings.
const VARIABLE: &str = "GLIBC_TUNABLES";
/// Names the process that has been started again: the library may drop its variable, and nothing is tried twice.
const STARTED: &str = "RWD_STARTED_AGAIN";
/// One arena: threads that allocate at once wait for one another, which does not show next to the disk. The thresholds
/// are what the library begins with; set by name they do not grow.
const SETTINGS: [&str; 3] =
    ["glibc.malloc.arena_max=1", "glibc.malloc.trim_threshold=131072", "glibc.malloc.mmap_threshold=131072"];

/// Starts this very program again, as the same process, when that is its own and the settings are not there yet.
///
/// To be called before anything is read or opened. Comes back when there is nothing to do or it does not work: then
/// the process needs more memory, and nothing else.
pub(crate) fn start_with_limits(world: &World) {
    if !(cfg!(target_env = "gnu") && world.own_process) {
        return;
    }
    let this = std::process::id().to_string();
    if world.var(STARTED).is_some_and(|started| started == &*this) {
        return;
    }
    let Some(settings) = missing(world.var(VARIABLE)) else { return };
    let error = start(world, &settings, &this);
    tracing::debug!(%error, "the process goes on without limits of its allocator");
}

/// The variable's value with our settings; `None` when somebody has chosen one of them.
fn missing(now: Option<&OsStr>) -> Option<String> {
    let now = match now {
        None => "",
        Some(text) => text.to_str()?,
    };
    let name = |setting: &str| setting.split_once('=').map_or(String::new(), |(name, _)| name.to_owned());
    let chosen = |setting: &&str| now.split(':').any(|other| name(other) == name(setting));
    if SETTINGS.iter().any(chosen) {
        return None;
    }
    let kept = (!now.is_empty()).then_some(now);
    Some(kept.into_iter().chain(SETTINGS).collect::<Vec<_>>().join(":"))
}

#[expect(clippy::disallowed_methods, reason = "it is this program, and the process stays the same")]
fn start(world: &World, settings: &str, this: &str) -> io::Error {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    let mut again = Command::new(program);
    let mut args = world.args.iter();
    if let Some(name) = args.next() {
        again.arg0(name);
    }
    again.args(args).env(VARIABLE, settings).env(STARTED, this).exec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_has_chosen_stays() {
        let ours = SETTINGS.join(":");
        assert_eq!(missing(None), Some(ours.clone()));
        assert_eq!(missing(Some("glibc.malloc.check=3".as_ref())), Some(format!("glibc.malloc.check=3:{ours}")));
        for chosen in [&ours, "glibc.malloc.arena_max=8", "a.b=1:glibc.malloc.trim_threshold=0"] {
            assert_eq!(missing(Some(chosen.as_ref())), None, "{chosen}");
        }
        let no_text: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff");
        assert_eq!(missing(Some(no_text)), None);
    }
}
