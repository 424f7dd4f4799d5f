//! `rwd doctor`: looks at everything that protection depends on, one thing at a time, so that one that is broken does
//! not hide the others.

mod agents;

use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use checkpoint_core::{OpKind, OpState, VerifyLevel, WorkspaceFs};
use durable_fs::FsFacts;
use index_store::{Orphan, Registry, Relinked};

use super::{OpenOperation, log};
use crate::approve::Consent;
use crate::args::DoctorArgs;
use crate::compose::{self, Located, Opened};
use crate::config::Settings;
use crate::error::{CliError, report};
use crate::output::Color;
use crate::run::Run;
use crate::text::put;
use crate::wire::{self, Check};
use crate::{exit, text};

/// What the checks have found so far.
struct Doctor<'a> {
    run: &'a Run,
    fix: bool,
    checks: Vec<Check>,
    exit: u8,
}

pub(crate) fn doctor(run: &Run, args: &DoctorArgs) -> Result<u8, CliError> {
    let mut doctor = Doctor { run, fix: args.fix, checks: Vec::new(), exit: exit::OK };
    doctor.all();
    let answer =
        wire::Doctor { ok: doctor.exit == exit::OK, version: env!("CARGO_PKG_VERSION"), checks: doctor.checks };
    run.out.answer(&answer, |answer| human(run, answer, args.fix))?;
    Ok(doctor.exit)
}

impl Doctor<'_> {
    fn say(&mut self, check: &'static str, status: &'static str, detail: impl Into<String>, hint: Option<String>) {
        self.checks.push(Check { check, status, detail: detail.into(), hint });
    }

    fn ok(&mut self, check: &'static str, detail: impl Into<String>) {
        self.say(check, "ok", detail, None);
    }

    /// What to do about it, if that is something else than what runs now.
    fn beyond_this(&self, hints: &[String]) -> Option<String> {
        let this = self.run.typed.other(&["doctor"]);
        hints.iter().find(|hint| **hint != this).cloned()
    }

    /// What failed decides the exit code; the first one counts.
    fn failed(&mut self, check: &'static str, error: &CliError) {
        let report = report(error, &self.run.typed);
        let message = std::iter::once(report.body.message).chain(report.body.causes).collect::<Vec<_>>().join(": ");
        self.say(check, "failed", message, self.beyond_this(&report.body.hints));
        if self.exit == exit::OK {
            self.exit = report.exit;
        }
    }

    fn all(&mut self) {
        let located = match compose::data_dir(self.run) {
            Err(error) => return self.failed("data-directory", &error),
            Ok(data) => {
                self.permissions(data.path());
                if self.registry(&Registry::new(data)).is_break() {
                    return;
                }
                self.agents();
                compose::find(self.run)
            }
        };
        let located = match located {
            Ok(located) => located,
            Err(error) => return self.failed("workspace", &error),
        };
        self.ok(
            "workspace",
            format!(
                "{} is {}",
                located.root().display(),
                located.workspace.id.to_string().get(..8).unwrap_or_default()
            ),
        );
        self.file_systems(&located);
        let settings = match Settings::load(&self.run.world, Some(located.root()), true) {
            Ok(settings) if settings.warnings.is_empty() => {
                self.ok("settings", "all can be read");
                settings
            }
            Ok(settings) => {
                self.say("settings", "warning", settings.warnings.join("; "), None);
                settings.told()
            }
            Err(error) => return self.failed("settings", &error),
        };
        match located.dir.index_kind() {
            Ok(None) => {
                return self.say("index", "warning", "there is no index yet", Some(self.run.typed.other(&["save"])));
            }
            Ok(Some(_)) => {}
            Err(error) => return self.failed("index", &error.into()),
        }
        match compose::open(self.run, located, settings, &|_, _| Ok(super::asker(self.run, Consent::Nobody))) {
            Ok(opened) => self.store(&opened),
            Err(error) => self.failed("index", &error),
        }
    }

    /// Workspaces that have points must be registered. Break: nothing can be found before that is put right.
    fn registry(&mut self, registry: &Registry) -> ControlFlow<()> {
        const CHECK: &str = "registry";
        let found = match registry.orphans() {
            Ok(found) => found,
            Err(error) => {
                self.failed(CHECK, &error.into());
                return ControlFlow::Break(());
            }
        };
        if found.damaged.is_none() && found.orphans.is_empty() {
            self.ok(CHECK, text::count(found.registered as u64, "workspace"));
            return ControlFlow::Continue(());
        }
        if !self.fix {
            let fix = self.run.typed.other(&["doctor", "--fix"]);
            for orphan in &found.orphans {
                self.say(CHECK, "warning", format!("{} is not registered", named(orphan)), Some(fix.clone()));
            }
            let Some(damaged) = found.damaged else { return ControlFlow::Continue(()) };
            self.failed(CHECK, &damaged.into());
            if let Some(last) = self.checks.last_mut() {
                last.hint = Some(fix);
            }
            return ControlFlow::Break(());
        }
        match registry.relink() {
            Ok(done) => self.relinked(&done),
            Err(error) => {
                self.failed(CHECK, &error.into());
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn relinked(&mut self, done: &Relinked) {
        const CHECK: &str = "registry";
        if let Some(aside) = &done.set_aside {
            self.say(CHECK, "fixed", format!("it was damaged and is kept as {}", aside.display()), None);
        }
        for orphan in &done.relinked {
            if orphan.exact {
                self.say(CHECK, "fixed", format!("{} is registered again", named(orphan)), None);
                continue;
            }
            let detail = format!("{} is registered again, but that directory is gone or another one", named(orphan));
            let hint = format!("in the directory that it is now: {}", self.run.typed.other(&["adopt"]));
            self.say(CHECK, "warning", detail, Some(hint));
        }
        for orphan in &done.left {
            let why = match &orphan.workspace {
                Some(_) => "another workspace has its path",
                None => "what its root was is not recorded",
            };
            self.say(CHECK, "warning", format!("{} is left as it is: {why}", named(orphan)), None);
        }
    }

    /// Only the owner may look into the data directory.
    fn permissions(&mut self, data: &Path) {
        if !data.is_dir() {
            return self.ok("data-directory", format!("{} does not exist yet", data.display()));
        }
        let mut open = Vec::new();
        too_open(data, &mut open);
        if open.is_empty() {
            return self.ok("data-directory", format!("{} is yours alone", data.display()));
        }
        let what = format!("others may look into {}", text::count(open.len() as u64, "place"));
        if !self.fix {
            return self.say("data-directory", "warning", what, Some(self.run.typed.other(&["doctor", "--fix"])));
        }
        for (path, mode) in &open {
            if let Err(source) = std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode)) {
                let error =
                    CliError::failure(format!("the permissions of {} cannot be changed", path.display()), source);
                return self.failed("data-directory", &error);
            }
        }
        self.say("data-directory", "fixed", what, None);
    }

    fn file_systems(&mut self, located: &Located) {
        let facts = |path: &Path| std::fs::File::open(path).and_then(durable_fs::fs_facts);
        for (check, path) in [("workspace-file-system", located.root()), ("data-file-system", located.data.path())] {
            match facts(path) {
                Ok(FsFacts { name, local: true, .. }) => self.ok(check, name),
                Ok(FsFacts { name, .. }) => {
                    let detail = format!("{name}: stamps younger than 2 s are not trusted, so captures read more");
                    self.say(check, "warning", detail, None);
                }
                Err(source) => {
                    self.failed(check, &CliError::failure(format!("cannot look at {}", path.display()), source));
                }
            }
        }
        if let Err(source) = tempfile::tempfile_in(located.dir.path()) {
            let error = CliError::failure(
                format!("{} may not be written: nothing can be captured", located.dir.path().display()),
                source,
            );
            return self.failed("writable", &error);
        }
        self.ok("writable", "the store may be written");
        let mounts = (durable_fs::mount_id(located.root()), durable_fs::mount_id(located.data.path()));
        let same = matches!(mounts, (Ok(Some(root)), Ok(Some(data))) if root == data);
        if !same {
            // Trying it in the user's tree would write there.
            return self.ok("exchange", "not tried: the data directory lies on another mount");
        }
        match exchanges(located.dir.path()) {
            Ok(true) => self.ok("exchange", "two names can be exchanged in one step"),
            Ok(false) => {
                let detail =
                    "names cannot be exchanged here: a restore compares, then renames, a window of microseconds";
                self.say("exchange", "warning", detail, None);
            }
            Err(source) => {
                self.failed("exchange", &CliError::failure("the exchange of two names cannot be tried", source));
            }
        }
    }

    fn store(&mut self, opened: &Opened) {
        self.ok("index", opened.index.name());
        match opened.files.root_facts() {
            Ok(_) => self.ok("root", "can be read"),
            Err(error) => self.failed("root", &error.into()),
        }
        match super::open_operation(opened) {
            Ok(None) => self.purges(opened),
            Ok(Some(open)) if open.busy => self.say("operations", "warning", open.line(self.run), None),
            Ok(Some(OpenOperation { intent, .. })) => {
                let error = checkpoint_core::EngineError::Unfinished {
                    operation: intent.operation,
                    forking: intent.state == checkpoint_core::IntentState::Forking,
                };
                self.failed("operations", &error.into());
            }
            Err(error) => self.failed("operations", &error),
        }
        match opened.engine.verify(VerifyLevel::Reachable) {
            Ok(verified) if verified.damaged.is_empty() => {
                self.ok("points", format!("{} can be restored", text::count(verified.checkpoints, "point")));
            }
            Ok(verified) => {
                let ids: Vec<String> = verified.damaged.iter().map(|d| d.point.short()).collect();
                let detail = format!("{} of {} cannot be restored: {}", ids.len(), verified.checkpoints, ids.join(" "));
                let hint = Some(format!("all others can; to remove one: {}", self.run.typed.other(&["drop", &ids[0]])));
                self.say("points", "failed", detail, hint);
                self.exit = if self.exit == exit::OK { exit::DAMAGED } else { self.exit };
            }
            Err(error) => self.failed("points", &error.into()),
        }
        match opened.engine.unprotected() {
            Ok(None) => self.ok("protection", "the newest capture was made"),
            Ok(Some(gap)) => {
                let detail = format!("the newest capture was not made: {}", log::gap_reason(&gap));
                self.say("protection", "warning", detail, Some(self.run.typed.other(&["save"])));
            }
            Err(error) => self.failed("protection", &error.into()),
        }
        self.leftovers(opened);
    }

    /// A purge that was interrupted: its points no longer refer to the content, but the store may still have it.
    fn purges(&mut self, opened: &Opened) {
        let purges = match opened.index.operations(&[OpKind::Purge], None) {
            Ok(purges) => purges,
            Err(error) => return self.failed("operations", &error.into()),
        };
        match purges.iter().find(|purge| purge.state == OpState::Partial) {
            None => self.ok("operations", "none is unfinished"),
            Some(purge) => {
                let summary = wire::shown(&purge.summary);
                let detail =
                    format!("{} ({summary}) did not finish: the content may still be stored", purge.id.short());
                self.say("operations", "warning", detail, Some(self.run.typed.other(&["gc"])));
            }
        }
    }

    /// Temporaries of processes that are gone.
    fn leftovers(&mut self, opened: &Opened) {
        match opened.engine.gc(true) {
            Ok(report) if report.swept == 0 => self.ok("leftovers", "none"),
            Ok(_) if self.fix => match opened.engine.gc(false) {
                Ok(done) => {
                    self.say("leftovers", "fixed", format!("{} removed", text::count(done.swept, "file")), None);
                }
                Err(error) => self.failed("leftovers", &error.into()),
            },
            Ok(report) => {
                let detail = format!("{} of earlier runs", text::count(report.swept, "file"));
                self.say("leftovers", "warning", detail, Some(self.run.typed.other(&["doctor", "--fix"])));
            }
            Err(error) => self.failed("leftovers", &error.into()),
        }
    }
}

/// A workspace by its root, where that is known, and its id.
fn named(orphan: &Orphan) -> String {
    match &orphan.workspace {
        Some(workspace) => format!("{} (workspace {})", workspace.root.display(), orphan.id.short()),
        None => format!("workspace {}", orphan.id),
    }
}

/// `path` and everything below it that others may use, with the mode it should have.
fn too_open(path: &Path, found: &mut Vec<(std::path::PathBuf, u32)>) {
    use std::os::unix::fs::MetadataExt;
    let Ok(facts) = path.symlink_metadata() else { return };
    if facts.is_symlink() {
        return;
    }
    // A pack that is linked from a repository has the repository's mode.
    if facts.mode() & 0o077 != 0 && (facts.is_dir() || facts.nlink() == 1) {
        found.push((path.to_owned(), if facts.is_dir() { 0o700 } else { facts.mode() & 0o700 }));
    }
    if facts.is_dir()
        && let Ok(entries) = std::fs::read_dir(path)
    {
        entries.flatten().for_each(|entry| too_open(&entry.path(), found));
    }
}

/// Tries to exchange two files of our own.
fn exchanges(dir: &Path) -> std::io::Result<bool> {
    use std::io::Error;
    let scratch = tempfile::tempdir_in(dir)?;
    for name in ["a", "b"] {
        drop(std::fs::File::create_new(scratch.path().join(name))?);
    }
    let dir = durable_fs::Dir::open_root(scratch.path()).map_err(Error::other)?;
    match dir.exchange(b"a", b"b") {
        Ok(()) => Ok(true),
        Err(error) if durable_fs::Dir::is_unsupported(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn human(run: &Run, answer: &wire::Doctor, fix: bool) -> String {
    let bad = answer.checks.iter().filter(|check| check.status == "failed").count() as u64;
    let warnings = answer.checks.iter().filter(|check| check.status == "warning").count() as u64;
    let mut out = format!("{} failed, {}\n", text::count(bad, "check"), text::count(warnings, "warning"));
    for check in &answer.checks {
        let status = match check.status {
            "ok" => run.out.paint(Color::Green, "ok      "),
            "failed" => run.out.paint(Color::Red, "FAILED  "),
            "fixed" => run.out.paint(Color::Green, "fixed   "),
            _ => run.out.paint(Color::Yellow, "warning "),
        };
        put!(out, "{status}{:<22} {}\n", check.check, wire::shown(&check.detail));
        if let Some(hint) = &check.hint {
            put!(out, "{:30} {hint}\n", "");
        }
    }
    if !fix
        && answer
            .checks
            .iter()
            .any(|check| check.status == "warning" && check.hint.as_ref().is_some_and(|h| h.ends_with("--fix")))
    {
        put!(out, "to put right what can be put right: {}\n", run.typed.other(&["doctor", "--fix"]));
    }
    out
}
