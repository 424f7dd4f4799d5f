//! One capture from start to answer: sources, walk, durable objects, cache; in a process that stays, by a hint where one
//! can stand for the walk.

use std::{ops::ControlFlow, path::PathBuf, time::Instant};

use checkpoint_core::{CaptureRequest, Captured, PathState, RelPath, Snapshot, SnapshotError};
use rustix::{
    fd::OwnedFd,
    fs::{Mode, OFlags},
};

use crate::{
    GitSnapshots,
    cache::{Cache, Restored},
    read,
    rules::{Cover, Sources, Tracked},
    seed::{self, Seed},
    store::Batch,
    user_repo::UserRepo,
    walk::{self, Found, Reserved, Setup, WINDOW, now, unsettled},
    watch::{Hint, Key, Resident, Walked, Went},
};

/// Captures what `request` asks for. The caller holds the workspace's lock, shared at least.
pub(crate) fn capture(this: &GitSnapshots, request: &CaptureRequest<'_>) -> Result<Captured, SnapshotError> {
    // A capture beside another of this process walks, and leaves what that one keeps alone.
    let mut resident = this.resident.as_ref().and_then(|resident| resident.try_lock().ok());
    if let Some(resident) = resident.as_deref_mut().filter(|_| request.watched)
        && let Some(captured) = Capture::begin(this, request)?.by_hint(resident)?
    {
        return Ok(captured);
    }
    Capture::begin(this, request)?.by_walk(resident.as_deref_mut())
}

/// What a capture needs besides the files.
struct Capture<'a> {
    this: &'a GitSnapshots,
    request: &'a CaptureRequest<'a>,
    /// When it began, as stamps count.
    start: i64,
    until: Option<Instant>,
    root: OwnedFd,
    repo: Option<UserRepo>,
    reserved: Reserved,
    sources: Sources,
    warnings: Vec<String>,
}

impl<'a> Capture<'a> {
    fn begin(this: &'a GitSnapshots, request: &'a CaptureRequest<'a>) -> Result<Self, SnapshotError> {
        let started = Instant::now();
        let start = now();
        let until = request.deadline.map(|time| started + time);
        let root = rustix::fs::open(&this.root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| SnapshotError::Io { path: this.root.clone(), source: errno.into() })?;
        // What another process has collected must not be relied on, nor what it has added be written twice.
        this.store.refresh()?;
        let mut warnings = Vec::new();
        let repo = UserRepo::discover(&this.root);
        let reserved = reserved(this);
        let settings = settings(request, &reserved);
        let sources = Sources::gather(request.policy, repo.as_ref(), &this.options.config, &settings, &mut warnings);
        Ok(Self { this, request, start, until, root, repo, reserved, sources, warnings })
    }

    fn tracked(&self) -> Tracked<'_> {
        Tracked::new(self.repo.as_ref(), self.start.saturating_sub(WINDOW))
    }

    fn walk(&self, with: &Walking<'_>) -> Result<Found, SnapshotError> {
        let Self { this, request, .. } = self;
        walk::run(Setup {
            root: &self.root,
            store: &this.store,
            batch: with.batch,
            cache: with.cache,
            restored: with.restored,
            sources: &self.sources,
            tracked: with.tracked,
            cover: with.cover,
            seed: with.seed,
            base: request.base.map(|snapshot| (Some(snapshot.tree), Some(snapshot.meta))),
            policy: request.policy,
            temporaries: request.temporaries,
            reserved: &self.reserved,
            write: request.write,
            start: self.start,
            until: self.until,
            progress: request.progress,
            room: room(this, request)?,
            // A few directories are not worth a thread.
            threads: if with.hint.is_some() { 1 } else { this.options.threads },
            hint: with.hint,
        })
    }

    /// Looks where a watcher says that something changed. `None`: a walk is needed.
    fn by_hint(mut self, resident: &mut Resident) -> Result<Option<Captured>, SnapshotError> {
        let (this, request) = (self.this, self.request);
        let mut warnings = std::mem::take(&mut self.warnings);
        let Ok(epoch) = this.options.epoch.current() else { return Ok(None) };
        let tracked = self.tracked();
        let Some(key) = Key::of(request, epoch, &self.sources, tracked.digest) else { return Ok(None) };
        let Some(going) = resident.go(request, &key, || Cache::load(&this.cache, epoch)) else { return Ok(None) };
        let cover = Cover::new(request, &this.store);
        let batch = this.store.batch(true);
        let restored = Restored::beside(&this.cache, Some(epoch));
        let with = Walking {
            batch: &batch,
            cache: &going.cache,
            restored: &restored,
            tracked: &tracked,
            cover: &cover,
            seed: None,
            hint: Some(&going.hint),
        };
        let done = self.walk(&with).and_then(|found| {
            if found.doubt || found.loose || found.foreign {
                return Ok(None);
            }
            let snapshot = snapshot_of(&found)?;
            let new_bytes = batch.finish()?;
            let mut more_files = 0;
            read::diff(&this.store, &going.from, &snapshot, &mut |change| {
                let is_file = |state: &PathState| !state.is_absent() && !state.is_dir();
                more_files += i64::from(is_file(&change.after)) - i64::from(is_file(&change.before));
                ControlFlow::Continue(())
            })?;
            Ok(Some((snapshot, new_bytes, more_files, found)))
        });
        let (snapshot, new_bytes, more_files, found) = match done {
            Ok(Some(done)) => done,
            Err(error) => {
                resident.failed(going);
                return match error {
                    SnapshotError::Deadline | SnapshotError::Interrupted | SnapshotError::NoSpace { .. } => Err(error),
                    // What a walk does not ask for may be damaged: that is no reason for a gap.
                    other => {
                        tracing::debug!(error = %other, "a capture by hint failed");
                        Ok(None)
                    }
                };
            }
            Ok(None) => {
                resident.failed(going);
                return Ok(None);
            }
        };
        warnings.extend(found.warnings);
        warnings.extend(tracked.warning());
        warnings.extend(cover.warnings());
        let went = Went { snapshot, more_files, skipped: found.skipped, records: &found.records };
        let Some((files, skipped)) = resident.went(going, went) else { return Ok(None) };
        Ok(Some(Captured {
            snapshot,
            skipped,
            // Nothing that was not looked at is proven absent.
            live: vec![None],
            files,
            new_bytes,
            head: self.repo.as_ref().map(UserRepo::head),
            in_git: self.repo.is_some(),
            watched: true,
            warnings,
        }))
    }

    /// Looks everywhere.
    fn by_walk(mut self, mut resident: Option<&mut Resident>) -> Result<Captured, SnapshotError> {
        let (this, request) = (self.this, self.request);
        let mut warnings = std::mem::take(&mut self.warnings);
        let tracked = self.tracked();
        let cover = Cover::new(request, &this.store);
        let (epoch, cache) = match this.options.epoch.current() {
            Ok(epoch) => (Some(epoch), Cache::load(&this.cache, epoch)),
            Err(error) => {
                warnings.push(format!("cannot read the store's epoch, so every file is read again: {error}"));
                (None, Cache::unusable(&this.cache))
            }
        };
        if let Some(resident) = resident.as_deref_mut().filter(|_| request.write) {
            resident.walks(&this.root);
        }
        let believed = seed::prepare(this, request, self.repo.as_ref(), &tracked, self.start, self.until);
        let batch = this.store.batch(request.write).with_plain_trees(believed.is_some());
        let restored = Restored::beside(&this.cache, epoch);
        let with = Walking {
            batch: &batch,
            cache: &cache,
            restored: &restored,
            tracked: &tracked,
            cover: &cover,
            seed: believed.as_ref(),
            hint: None,
        };
        let found = self.walk(&with)?;
        let snapshot = snapshot_of(&found)?;
        let is_name = |name: &[u8]| !request.temporaries.iter().any(|prefix| name.starts_with(prefix));
        // The directories age while the disk syncs.
        let (new_bytes, live) = std::thread::scope(|scope| {
            let looking = scope.spawn(|| {
                let live = unsettled(&self.root, &found.dirs, self.until, this.options.threads, &is_name);
                live.into_iter().map(|dir| dir.path.clone()).collect::<Vec<_>>()
            });
            let new_bytes = batch.finish();
            // A thread that panicked has proved nothing.
            let live = looking.join().unwrap_or_else(|_| found.dirs.iter().map(|dir| dir.path.clone()).collect());
            (new_bytes, live)
        });
        let new_bytes = new_bytes?;
        warnings.extend(found.warnings);
        warnings.extend(tracked.warning());
        warnings.extend(cover.warnings());
        if request.write {
            let mut dirs: Vec<&[u8]> = found.dirs.iter().map(|dir| &dir.path[..]).collect();
            dirs.sort_unstable();
            cache.save(&found.records, &dirs);
            restored.used();
            if let Some(resident) = resident {
                let key = epoch.and_then(|epoch| Key::of(request, epoch, &self.sources, tracked.digest));
                let walked = Walked {
                    snapshot,
                    key,
                    files: found.files,
                    skipped: &found.skipped,
                    partial: found.loose || found.foreign,
                };
                resident.walked(walked, cache, &found.records, &dirs);
                warnings.extend(resident.warning());
            }
        }
        Ok(Captured {
            snapshot,
            skipped: found.skipped,
            live: live
                .into_iter()
                .filter_map(|path| if path.is_empty() { Some(None) } else { RelPath::new(path).ok().map(Some) })
                .collect(),
            files: found.files,
            new_bytes,
            head: self.repo.as_ref().map(UserRepo::head),
            in_git: self.repo.is_some(),
            watched: false,
            warnings,
        })
    }
}

/// What one walk works with.
struct Walking<'w> {
    batch: &'w Batch<'w>,
    cache: &'w Cache,
    restored: &'w Restored,
    tracked: &'w Tracked<'w>,
    cover: &'w Cover<'w>,
    seed: Option<&'w Seed<'w>>,
    hint: Option<&'w Hint>,
}

fn snapshot_of(found: &Found) -> Result<Snapshot, SnapshotError> {
    let missing = |what| SnapshotError::Other { what: "finishing a capture", source: String::from(what).into() };
    Ok(Snapshot {
        tree: found.ids.0.ok_or_else(|| missing("the root has no tree"))?,
        meta: found.ids.1.ok_or_else(|| missing("the root has no meta tree"))?,
    })
}

/// What rwd keeps for itself below the root.
fn reserved(this: &GitSnapshots) -> Reserved {
    use std::os::unix::{ffi::OsStrExt, fs::MetadataExt};
    let mut reserved = Reserved { paths: vec![b".dsh/memory".to_vec()], ids: Vec::new() };
    reserved.paths.extend(this.options.leave_out.iter().map(|path| path.as_bytes().to_vec()));
    let data = this.options.data_dir.iter().map(PathBuf::as_path);
    for dir in data.chain([this.store.dir()]) {
        let Ok(real) = dir.canonicalize() else { continue };
        if let Ok(below) = real.strip_prefix(&this.root)
            && !below.as_os_str().is_empty()
        {
            reserved.paths.push(below.as_os_str().as_bytes().to_vec());
        }
        // By identity too: a bind mount gives it other names.
        reserved.ids.extend(std::fs::metadata(&real).ok().map(|meta| (meta.dev(), meta.ino())));
    }
    reserved
}

/// What else decides about names, for the digest that cached decisions rest on.
fn settings(request: &CaptureRequest<'_>, reserved: &Reserved) -> Vec<u8> {
    let mut out = request.policy.untracked_max_bytes.to_le_bytes().to_vec();
    for path in &reserved.paths {
        out.extend_from_slice(path);
        out.push(0);
    }
    for (dev, ino) in &reserved.ids {
        out.extend(dev.to_le_bytes());
        out.extend(ino.to_le_bytes());
    }
    out
}

/// Bytes that the store may still grow by: the budget's and the disk's.
fn room(this: &GitSnapshots, request: &CaptureRequest<'_>) -> Result<u64, SnapshotError> {
    let own = read::usage(&this.store)?.own_bytes;
    let dir = this.store.pack_dir();
    let disk =
        rustix::fs::statvfs(dir).map_err(|errno| SnapshotError::Io { path: dir.to_owned(), source: errno.into() })?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let policy = request.policy;
    let most = if policy.over_budget { u64::MAX } else { policy.store_max_bytes };
    Ok(most.saturating_sub(own).min(free.saturating_sub(policy.free_space_floor)))
}
