#![no_main]

#[path = "../store_entry.rs"]
#[allow(dead_code, reason = "each target uses one of its functions")]
mod store_entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| store_entry::index_json(data));
