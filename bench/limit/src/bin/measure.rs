//! Runs one command and says what it cost: `measure OUT COMMAND ARG…`.
//!
//! OUT receives one line: wall nanoseconds, user and system microseconds, peak resident kilobytes, exit code. A
//! program this small does the spawning because a child's peak counts its parent's pages until it executes.

use std::{ffi::OsString, os::unix::process::ExitStatusExt as _, process::Command, time::Instant};

fn main() {
    let mut args = std::env::args_os().skip(1);
    let out = args.next().expect("usage: measure OUT COMMAND ARG…");
    let program = args.next().expect("usage: measure OUT COMMAND ARG…");
    let rest: Vec<OsString> = args.collect();
    let begun = Instant::now();
    let child = Command::new(program).args(rest).spawn().expect("cannot start the command");
    let pid = i32::try_from(child.id()).expect("a process id fits");
    let mut status = 0;
    // SAFETY: all zeroes is an `rusage`, both pointers are to locals, and nobody else waits for this child.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::wait4(pid, &raw mut status, 0, &raw mut usage), pid, "cannot wait for the command");
        usage
    };
    let wall = begun.elapsed().as_nanos();
    let micros = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    let code = std::process::ExitStatus::from_raw(status).code().unwrap_or(-1);
    let line = format!("{wall} {} {} {} {code}\n", micros(usage.ru_utime), micros(usage.ru_stime), usage.ru_maxrss);
    std::fs::write(out, line).expect("cannot write what it cost");
}
