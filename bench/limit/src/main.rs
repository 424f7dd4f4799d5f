//! The yardstick: lists and lstats every file below a directory with some threads, and nothing else.
//!
//! `limit DIR [THREADS]` prints files, directories and milliseconds. It is a yardstick and not a floor: who knows a
//! directory to be unchanged need not list it.

use std::{
    ffi::CString,
    os::unix::ffi::OsStrExt as _,
    sync::atomic::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
    time::Instant,
};

use crossbeam_deque::{Steal, Stealer, Worker};

/// Calls `visit` with name, type and the name as a C string for every entry but `.`, `..` and `.git`.
fn list(fd: i32, buffer: &mut [u8], mut visit: impl FnMut(&[u8], u8, *const libc::c_char)) {
    loop {
        // SAFETY: the pointer and the length describe `buffer`.
        let filled = unsafe { libc::syscall(libc::SYS_getdents64, fd, buffer.as_mut_ptr(), buffer.len()) };
        let Ok(filled) = usize::try_from(filled) else { return };
        if filled == 0 {
            return;
        }
        let mut at = 0;
        while at < filled {
            // SAFETY: the kernel wrote whole `linux_dirent64` records up to `filled`: 8 bytes inode, 8 bytes offset,
            // 2 bytes length, 1 byte type, then the name with its NUL.
            unsafe {
                let record = buffer.as_ptr().add(at);
                let length = usize::from(record.add(16).cast::<u16>().read_unaligned());
                let (kind, name) = (*record.add(18), record.add(19).cast::<libc::c_char>());
                let bytes = std::slice::from_raw_parts(name.cast::<u8>(), libc::strlen(name));
                if bytes != b"." && bytes != b".." && bytes != b".git" {
                    visit(bytes, kind, name);
                }
                at += length;
            }
        }
    }
}

fn main() {
    let mut args = std::env::args_os().skip(1);
    let dir = args.next().expect("usage: limit DIR [THREADS]");
    let threads: usize = args.next().and_then(|count| count.to_str()?.parse().ok()).unwrap_or(2);
    let begun = Instant::now();
    let root = CString::new(dir.as_bytes()).expect("an argument has no NUL");
    // SAFETY: `root` is a C string.
    let root = unsafe { libc::open(root.as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC) };
    assert!(root >= 0, "cannot open the directory");
    let workers: Vec<Worker<Vec<u8>>> = (0..threads).map(|_| Worker::new_lifo()).collect();
    let stealers: Vec<Stealer<Vec<u8>>> = workers.iter().map(Worker::stealer).collect();
    workers[0].push(b".".to_vec());
    let (pending, files, dirs) = (AtomicUsize::new(1), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for (me, own) in workers.into_iter().enumerate() {
            let (stealers, pending, files, dirs) = (&stealers, &pending, &files, &dirs);
            scope.spawn(move || {
                let (mut buffer, mut seen_files, mut seen_dirs) = (vec![0_u8; 32 << 10], 0, 0);
                loop {
                    let job = own.pop().or_else(|| {
                        (1..stealers.len()).find_map(|step| {
                            loop {
                                match stealers[(me + step) % stealers.len()].steal() {
                                    Steal::Success(job) => break Some(job),
                                    Steal::Empty => break None,
                                    Steal::Retry => {}
                                }
                            }
                        })
                    });
                    let Some(mut path) = job else {
                        if pending.load(Acquire) == 0 {
                            break;
                        }
                        std::thread::yield_now();
                        continue;
                    };
                    path.push(0);
                    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW | libc::O_CLOEXEC;
                    // SAFETY: `path` ends with the NUL pushed above.
                    let fd = unsafe { libc::openat(root, path.as_ptr().cast(), flags) };
                    path.pop();
                    seen_dirs += 1;
                    list(fd, &mut buffer, |bytes, kind, name| {
                        if kind == libc::DT_DIR {
                            let mut below = Vec::with_capacity(path.len() + bytes.len() + 2);
                            below.extend_from_slice(&path);
                            below.push(b'/');
                            below.extend_from_slice(bytes);
                            pending.fetch_add(1, AcqRel);
                            own.push(below);
                        } else {
                            // SAFETY: all zeroes is a `stat`, and `name` is a C string that `list` holds.
                            let stat = unsafe {
                                let mut stat: libc::stat = std::mem::zeroed();
                                libc::fstatat(fd, name, &raw mut stat, libc::AT_SYMLINK_NOFOLLOW);
                                stat
                            };
                            std::hint::black_box(stat.st_size);
                            seen_files += 1;
                        }
                    });
                    // SAFETY: opened above and used by nobody else.
                    unsafe { libc::close(fd) };
                    pending.fetch_sub(1, AcqRel);
                }
                files.fetch_add(seen_files, Relaxed);
                dirs.fetch_add(seen_dirs, Relaxed);
            });
        }
    });
    let took = begun.elapsed().as_secs_f64() * 1e3;
    println!("{} files {} dirs {took:.2} ms", files.load(Relaxed), dirs.load(Relaxed));
}
