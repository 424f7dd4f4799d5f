//! Which workspace a hook works on (design § 4).
//!
//! Hooks of user scope run in every directory an agent is started in. A directory is registered when a turn begins in
//! it or a tool is about to change it, as `rwd save` does, but never `/`, a home directory, the data directory, a
//! directory of the system or one for temporary files: there is nothing to undo there as a whole.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use harness_adapter::hooks::{HookEvent, What};
use index_store::{DataError, Registration, Registry, Standing};

use crate::compose::{self, Located};
use crate::error::CliError;
use crate::run::Run;

/// Directories of the system: one of these itself is no project, what lies below may be.
const SYSTEM: [&str; 20] = [
    "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/media", "/mnt", "/opt", "/private", "/proc", "/root",
    "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var",
];
/// Nothing below these is a project.
const DEEP: [&str; 4] = ["/dev", "/proc", "/sys", "/run"];

/// The workspace of an event; `None` where there is none and none is to be made.
pub(super) fn locate(run: &Run, event: &HookEvent) -> Result<Option<Located>, CliError> {
    let data = compose::data_dir(run)?;
    let Some(start) = start(run, event)? else { return Ok(None) };
    let registry = Registry::new(data.clone());
    let found = registry.find(&start)?;
    let begins = match event.what {
        What::Prompt { .. } => event.subagent.is_none(),
        What::BeforeTool(_) => true,
        _ => false,
    };
    let found = match found {
        Some(found) if found.standing == Standing::Moved => {
            return Err(CliError::Moved { root: found.root, before: found.workspace.root });
        }
        Some(found) if found.standing == Standing::Known || !begins => found,
        None if !begins || is_no_project(&start, run.world.var("TMPDIR")) => return Ok(None),
        known => {
            let root = known.map_or_else(|| start.clone(), |found| found.root);
            let home = run.world.home().map(Path::to_owned);
            let registration = Registration { ..Located::registration(&root, home) };
            match registry.register(&root, &registration) {
                Err(DataError::Refused { .. }) => return Ok(None),
                Ok(found) if found.standing == Standing::Moved => {
                    return Err(CliError::Moved { root: found.root, before: found.workspace.root });
                }
                other => other?,
            }
        }
    };
    Ok(Some(Located::new(found, registry, data)))
}

/// Where the search begins: `-C`, else the project that the harness declares, else the current directory. A working
/// directory that the payload names is the last resort: it moves. `None` when all of them are gone.
fn start(run: &Run, event: &HookEvent) -> Result<Option<PathBuf>, CliError> {
    if run.global.dir.is_some() {
        return run.start().map(Some);
    }
    let places = [event.project.as_deref(), run.world.cwd.as_deref(), event.cwd.as_deref()];
    let mut there = places.into_iter().flatten().filter(|path| path.is_absolute());
    Ok(there.find_map(|path| path.canonicalize().ok().filter(|path| path.is_dir())))
}

/// True for directories that are never registered by themselves.
fn is_no_project(start: &Path, temporary: Option<&OsStr>) -> bool {
    let is = |other: &Path| start == other || other.canonicalize().is_ok_and(|other| start == other);
    SYSTEM.iter().chain(&["/var/tmp", "/private/tmp"]).any(|path| is(Path::new(path)))
        || DEEP.iter().any(|path| start.starts_with(path))
        || temporary.is_some_and(|path| is(Path::new(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_everybody_are_no_projects_and_what_lies_in_them_may_be() {
        for path in ["/tmp", "/usr", "/var/tmp", "/proc/1", "/run/user/0"] {
            assert!(is_no_project(Path::new(path), None), "{path}");
        }
        let scratch = tempfile::tempdir().unwrap();
        let scratch = scratch.path().canonicalize().unwrap();
        assert!(!is_no_project(&scratch, None) && !is_no_project(Path::new("/srv/shop"), None));
        assert!(is_no_project(&scratch, Some(scratch.as_os_str())));
        assert!(!is_no_project(&scratch.join("x"), Some(scratch.as_os_str())));
    }
}
