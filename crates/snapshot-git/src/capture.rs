//! One capture from start to answer: sources, walk, durable objects, cache.

use std::{path::PathBuf, time::Instant};

use checkpoint_core::{CaptureRequest, Captured, RelPath, Snapshot, SnapshotError};
use rustix::fs::{Mode, OFlags};

use crate::{
    GitSnapshots,
    cache::Cache,
    read,
    rules::{Cover, Sources, Tracked},
    seed,
    user_repo::UserRepo,
    walk::{self, Reserved, Setup, WINDOW, now, unsettled},
};

/// Captures what `request` asks for. The caller holds the workspace's lock, shared at least.
pub(crate) fn capture(this: &GitSnapshots, request: &CaptureRequest<'_>) -> Result<Captured, SnapshotError> {
    let started = Instant::now();
    let start = now();
    let until = request.deadline.map(|time| started + time);
    let policy = request.policy;
    let root = rustix::fs::open(&this.root, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| SnapshotError::Io { path: this.root.clone(), source: errno.into() })?;
    let store = &this.store;
    // What another process has collected must not be relied on, nor what it has added be written twice.
    store.refresh()?;
    let mut warnings = Vec::new();
    let repo = UserRepo::discover(&this.root);
    let reserved = reserved(this);
    let sources =
        Sources::gather(policy, repo.as_ref(), &this.options.config, &settings(request, &reserved), &mut warnings);
    let young = start.saturating_sub(WINDOW);
    let tracked = Tracked::new(repo.as_ref(), young);
    let cover = Cover::new(request, store);
    let known = seed::prepare(this, request, repo.as_ref(), &tracked, start, until);
    let cache = match this.options.epoch.current() {
        Ok(epoch) => Cache::load(&this.cache, epoch),
        Err(error) => {
            warnings.push(format!("cannot read the store's epoch, so every file is read again: {error}"));
            Cache::unusable(&this.cache)
        }
    };
    let batch = store.batch(request.write).with_plain_trees(known.is_some());
    let found = walk::run(Setup {
        root: &root,
        store,
        batch: &batch,
        cache: &cache,
        sources: &sources,
        tracked: &tracked,
        cover: &cover,
        seed: known.as_ref(),
        base: request.base.map(|snapshot| (Some(snapshot.tree), Some(snapshot.meta))),
        policy,
        temporaries: request.temporaries,
        reserved: &reserved,
        write: request.write,
        start,
        until,
        progress: request.progress,
        room: room(this, request)?,
        threads: this.options.threads,
    })?;
    let missing = |what| SnapshotError::Other { what: "finishing a capture", source: String::from(what).into() };
    let snapshot = Snapshot {
        tree: found.ids.0.ok_or_else(|| missing("the root has no tree"))?,
        meta: found.ids.1.ok_or_else(|| missing("the root has no meta tree"))?,
    };
    let is_name = |name: &[u8]| !request.temporaries.iter().any(|prefix| name.starts_with(prefix));
    // The directories age while the disk syncs.
    let (new_bytes, live) = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let live = unsettled(&root, &found.dirs, until, this.options.threads, &is_name);
            live.into_iter().map(|dir| dir.path.clone()).collect::<Vec<_>>()
        });
        let new_bytes = batch.finish();
        // A thread that panicked has proved nothing.
        let live = looking.join().unwrap_or_else(|_| found.dirs.iter().map(|dir| dir.path.clone()).collect());
        (new_bytes, live)
    });
    let new_bytes = new_bytes?;
    if request.write {
        let mut seen: Vec<&[u8]> = found.dirs.iter().map(|dir| &dir.path[..]).collect();
        seen.sort_unstable();
        cache.save(&found.records, &seen);
    }
    warnings.extend(found.warnings);
    warnings.extend(tracked.warning());
    warnings.extend(cover.warnings());
    Ok(Captured {
        snapshot,
        skipped: found.skipped,
        live: live
            .into_iter()
            .filter_map(|path| if path.is_empty() { Some(None) } else { RelPath::new(path).ok().map(Some) })
            .collect(),
        files: found.files,
        new_bytes,
        head: repo.as_ref().map(UserRepo::head),
        in_git: repo.is_some(),
        warnings,
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
    Ok(policy.store_max_bytes.saturating_sub(own).min(free.saturating_sub(policy.free_space_floor)))
}
