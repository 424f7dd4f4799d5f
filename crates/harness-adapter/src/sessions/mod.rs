//! Session logs of harnesses, read straight from their own files.

pub mod dsh;
