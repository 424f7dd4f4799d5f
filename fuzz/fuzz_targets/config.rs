#![no_main]

#[path = "../cli_entry.rs"]
#[allow(dead_code, reason = "each target uses one of its functions")]
mod entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entry::config(data));
