//! Every file of the corpora of rwd's own formats, and small changes of each, through the functions that the fuzz targets
//! call.

use std::fs;
use std::path::Path;

#[path = "../../../../fuzz/store_entry.rs"]
mod store_entry;

/// Changes of each file. More are for libfuzzer to find.
const CHANGES: u64 = 60;

/// Some bytes changed, cut, doubled or put in.
fn changed(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut roll = |sides: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 16).unwrap_or(usize::MAX) % sides.max(1)
    };
    let mut new = bytes.to_vec();
    for _ in 0..=roll(3) {
        let at = roll(new.len());
        match roll(5) {
            0 if at < new.len() => new[at] ^= 1 << roll(8),
            1 => new.truncate(at),
            2 => new.insert(at, b"\0\n{/~:"[roll(6)]),
            3 if at < new.len() => drop(new.remove(at)),
            _ => {
                let end = (at + roll(40)).min(new.len());
                let piece = new[at..end].to_vec();
                new.splice(at..at, piece);
            }
        }
    }
    new
}

fn replay(target: &str, changes: u64, run: fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files = 0;
    for entry in fs::read_dir(dir).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        files += 1;
        run(&bytes);
        for seed in 0..changes {
            run(&changed(&bytes, seed));
        }
    }
    assert!(files > 1, "{target} has no corpus");
}

#[test]
fn addresses_names_and_paths() {
    replay("address", CHANGES, store_entry::address);
}

#[test]
fn index_files() {
    replay("index_json", CHANGES, store_entry::index_json);
}

#[test]
fn stat_caches() {
    replay("stat_cache", CHANGES / 4, store_entry::stat_cache);
}

#[test]
fn packs() {
    replay("pack", CHANGES / 2, store_entry::pack);
}

#[test]
fn indexes_of_packs() {
    replay("pack_index", CHANGES / 2, store_entry::pack_index);
}
