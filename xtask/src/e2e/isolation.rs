//! A network of its own for the clients: loopback and nothing else. They have false keys, but they also look for updates
//! and report how they are used, and a test that needs somebody's server proves nothing.

use std::{ffi::OsString, path::Path, time::Duration};

use crate::{
    Result,
    process::{Running, command},
};

/// A client's whole scenario.
const PATIENCE: Duration = Duration::from_mins(20);

/// Brings loopback up and becomes the command that follows.
const INSIDE: &str = r#"ip link set lo up 2>/dev/null || ifconfig lo up || { echo "cannot bring loopback up: install iproute2" >&2; exit 1; }
exec "$@""#;

/// Runs this very program again with `arguments`, where there is no network.
pub(super) fn run(arguments: &[OsString]) -> Result {
    let unshare = unshare()?;
    let mut inside = command("unshare");
    inside.args(unshare).args(["sh", "-c", INSIDE, "sh"]).arg(std::env::current_exe()?).args(arguments);
    match Running::start(&mut inside, PATIENCE, None)?.wait()?.failure() {
        None => Ok(()),
        Some(why) => Err(why.into()),
    }
}

/// How `unshare` makes a network namespace here: as root at once, else as root of a user namespace.
fn unshare() -> Result<&'static [&'static str]> {
    let ways: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];
    let mut complaint = String::new();
    for way in ways {
        match command("unshare").args(way).arg("true").output() {
            Ok(done) if done.status.success() => return Ok(way),
            Ok(done) => String::from_utf8_lossy(&done.stderr).trim().clone_into(&mut complaint),
            Err(error) => complaint = error.to_string(),
        }
    }
    Err(format!(
        "no network namespace can be made here ({complaint}), and the clients are not run without one: \
         run as root, or permit user namespaces (a container needs CAP_SYS_ADMIN; Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0)"
    )
    .into())
}

/// Fails unless loopback is the only way out: asked from within, so that a mistake above cannot go unseen.
pub(super) fn check() -> Result {
    let routes = |table: &str| std::fs::read_to_string(Path::new("/proc/net").join(table)).unwrap_or_default();
    // IPv4 has a heading and names the device first, IPv6 names it last.
    let (old, new) = (routes("route"), routes("ipv6_route"));
    let devices = old.lines().skip(1).filter_map(|route| route.split_whitespace().next());
    let devices = devices.chain(new.lines().filter_map(|route| route.split_whitespace().last()));
    let outside: Vec<&str> = devices.filter(|device| *device != "lo").collect();
    if outside.is_empty() { Ok(()) } else { Err(format!("the clients would have a network: {outside:?}").into()) }
}
