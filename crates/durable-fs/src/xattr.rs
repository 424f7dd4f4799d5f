//! Extended attributes, ACLs among them, of an open file.

use std::io;

use rustix::{fd::AsFd, io::Errno};

/// One extended attribute.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Attribute {
    /// Full name, as `user.note` or `system.posix_acl_access`.
    pub name: Vec<u8>,
    /// Value.
    pub value: Vec<u8>,
}

/// All attributes of an open file, by name; none where the file system has no such thing.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn read_attributes(file: impl AsFd) -> io::Result<Vec<Attribute>> {
    let file = file.as_fd();
    let names = match grown(|buffer| rustix::fs::flistxattr(file, buffer)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for name in names.split(|&b| b == 0).filter(|name| !name.is_empty()) {
        match grown(|buffer| rustix::fs::fgetxattr(file, name, buffer)) {
            Ok(value) => found.push(Attribute { name: name.to_vec(), value }),
            // Removed since it was listed.
            Err(Errno::NODATA) => {}
            Err(e) => return Err(e.into()),
        }
    }
    found.sort();
    Ok(found)
}

/// Calls with a buffer that grows until the answer fits.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn grown(mut call: impl FnMut(&mut [u8]) -> rustix::io::Result<usize>) -> rustix::io::Result<Vec<u8>> {
    let mut buffer = vec![0; 256];
    loop {
        match call(&mut buffer) {
            Ok(len) => {
                buffer.truncate(len);
                return Ok(buffer);
            }
            // The kernel's limit for names and values is 64 KiB.
            Err(Errno::RANGE) if buffer.len() <= 64 << 10 => buffer.resize(buffer.len() * 4, 0),
            Err(e) => return Err(e),
        }
    }
}

/// Sets one attribute of an open file.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn write_attribute(file: impl AsFd, attribute: &Attribute) -> io::Result<()> {
    let flags = rustix::fs::XattrFlags::empty();
    Ok(rustix::fs::fsetxattr(file, attribute.name.as_slice(), &attribute.value, flags)?)
}

/// Removes one attribute of an open file; fine when it has none of that name.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn remove_attribute(file: impl AsFd, name: &[u8]) -> io::Result<()> {
    match rustix::fs::fremovexattr(file, name) {
        Err(Errno::NODATA) => Ok(()),
        other => Ok(other?),
    }
}

/// Not looked at on this platform.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn read_attributes(_: impl AsFd) -> io::Result<Vec<Attribute>> {
    Ok(Vec::new())
}

/// Not supported on this platform.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn write_attribute(_: impl AsFd, _: &Attribute) -> io::Result<()> {
    Err(Errno::OPNOTSUPP.into())
}

/// Not supported on this platform.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn remove_attribute(_: impl AsFd, _: &[u8]) -> io::Result<()> {
    Err(Errno::OPNOTSUPP.into())
}
