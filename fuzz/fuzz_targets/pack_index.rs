#![no_main]

#[path = "../store_entry.rs"]
#[allow(dead_code, reason = "each target uses one of its functions")]
mod entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entry::pack_index(data));
