//! The shortest traces by which the model lost bytes (model F1, F2, F3), one test each.

use std::{fs, sync::Arc};

use checkpoint_core::{FsError, PathState, Settled, WorkspaceFs};
use workspace_fs::Support;

use crate::scratch::{NAMES, Scratch, Script, Thing, until_killed};

const BEFORE: Thing = Thing::File("before", 0o644);
const AFTER: Thing = Thing::File("after", 0o644);

/// Steps of an undisturbed overwrite, and the place of one of them.
fn step(what: &str) -> usize {
    let scratch = Scratch::quick();
    scratch.put("p", BEFORE);
    let script = Arc::new(Script::new());
    let change = scratch.change("p", BEFORE, AFTER);
    scratch.open_with(Support::Auto, script.clone()).apply(&change, &NAMES, 0, &scratch.blobs).unwrap();
    let steps = script.steps();
    steps.iter().position(|s| *s == what).unwrap_or_else(|| panic!("{what} is none of {steps:?}"))
}

/// Saves as editors do: a new file, renamed over the old one.
fn save(scratch: &Scratch, text: &'static str) -> impl Fn() + Send + Sync + 'static {
    let (root, at) = (scratch.at("saved"), scratch.at("p"));
    move || {
        fs::write(&root, text).unwrap();
        fs::rename(&root, &at).unwrap();
    }
}

/// F1: the user saves before the exchange, and again before what came out is put back. The second save was removed
/// with the temporary. What comes back is compared too, and unknown bytes are stored.
#[test]
fn f1_an_edit_before_the_exchange_back_is_not_lost() {
    let scratch = Scratch::quick();
    scratch.put("p", BEFORE);
    let change = scratch.change("p", BEFORE, AFTER);
    let exchange = step("exchange");
    let script = Script::new().edit_at(exchange, save(&scratch, "U1")).edit_at(exchange + 1, save(&scratch, "U2"));
    let script = Arc::new(script);
    let workspace = scratch.open_with(Support::Auto, script.clone());
    let refused = workspace.apply(&change, &NAMES, 0, &scratch.blobs).unwrap_err();
    assert_eq!(script.steps()[exchange + 1], "exchange", "the second edit came before the exchange back");
    let FsError::Changed { stored: Some(stored), found, .. } = refused else { panic!("{refused:?}") };
    let named = String::from_utf8(scratch.blobs.get(&stored).unwrap()).unwrap();
    let there = fs::read_to_string(scratch.at("p")).unwrap();
    assert_eq!(
        [named, there].into_iter().collect::<std::collections::BTreeSet<_>>(),
        ["U1".into(), "U2".into()].into()
    );
    assert_eq!(found, scratch.observe("p"));
    scratch.assert_tidy(&"F1");
}

/// F1, of a removal: the name is taken again, so what was taken out cannot be renamed back.
#[test]
fn f1_a_removal_whose_name_is_taken_again_stores_what_it_took() {
    let scratch = Scratch::quick();
    scratch.put("p", BEFORE);
    let change = scratch.change("p", BEFORE, Thing::Nothing);
    // Steps: take out, put back.
    let script = Script::new().edit_at(0, save(&scratch, "U1")).edit_at(1, save(&scratch, "U2"));
    let workspace = scratch.open_with(Support::Auto, Arc::new(script));
    let refused = workspace.apply(&change, &NAMES, 0, &scratch.blobs).unwrap_err();
    let FsError::Changed { stored: Some(stored), .. } = refused else { panic!("{refused:?}") };
    assert_eq!(scratch.blobs.get(&stored).unwrap(), b"U1");
    assert_eq!(fs::read_to_string(scratch.at("p")).unwrap(), "U2");
    scratch.assert_tidy(&"F1");
}

/// F2: a crash while the temporary is written. Taken for an exchanged-out file it would be "put back": a torn file
/// under the user's name. Under the first name it is swept.
#[test]
fn f2_a_half_written_temporary_never_gets_the_users_name() {
    let scratch = Scratch::quick();
    let long: &'static str = Box::leak("x".repeat(400_000).into_boxed_str());
    let after = Thing::File(long, 0o644);
    scratch.put("p", BEFORE);
    let change = scratch.change("p", BEFORE, after);
    // Create, write, write: killed before the third write.
    let script = Script::new().crash_at(Some(3));
    let workspace = scratch.open_with(Support::Auto, Arc::new(script));
    assert!(until_killed(|| workspace.apply(&change, &NAMES, 0, &scratch.blobs)).is_none());
    let torn = scratch.tree().into_iter().find(|(name, _)| name.contains(".rwd-")).unwrap();
    assert!(torn.0.as_bytes() == NAMES.draft(0) && !torn.1.is_empty() && torn.1.len() < long.len());
    fs::remove_file(scratch.at("p")).unwrap();
    let settled = scratch.open().settle(&change, &NAMES, 0, &scratch.blobs).unwrap();
    assert_eq!(settled, Settled::default());
    assert!(scratch.tree().is_empty());
}

/// F2, with whole temporaries: a crash after the exchange and before the compare; the user saves again; putting back
/// brings out that save, which was swept.
#[test]
fn f2_an_edit_between_crash_and_recovery_is_not_swept() {
    for (edit_again, stored) in [(false, false), (true, true)] {
        let scratch = Scratch::quick();
        scratch.put("p", BEFORE);
        let change = scratch.change("p", BEFORE, AFTER);
        let exchange = step("exchange");
        let script = Script::new().edit_at(exchange, save(&scratch, "U1")).crash_at(Some(exchange + 1));
        let workspace = scratch.open_with(Support::Auto, Arc::new(script));
        assert!(until_killed(|| workspace.apply(&change, &NAMES, 0, &scratch.blobs)).is_none());
        assert_eq!(scratch.observe("p"), change.after);
        if edit_again {
            save(&scratch, "U2")();
        }
        let settled = scratch.open().settle(&change, &NAMES, 0, &scratch.blobs).unwrap();
        assert_eq!((settled.put_back, settled.stored.is_some()), (!stored, stored));
        assert_eq!(fs::read_to_string(scratch.at("p")).unwrap(), if edit_again { "U2" } else { "U1" });
        scratch.assert_kept("U1", &"F2");
        scratch.assert_tidy(&"F2");
        assert_eq!(scratch.open().settle(&change, &NAMES, 0, &scratch.blobs).unwrap(), Settled::default());
    }
}

/// F2: the user's file was taken out, and the path was emptied since: it goes back under its name.
#[test]
fn f2_what_was_taken_out_goes_back_where_nothing_is() {
    let scratch = Scratch::quick();
    scratch.put("p", BEFORE);
    let change = scratch.change("p", BEFORE, Thing::Nothing);
    let script = Script::new().edit_at(0, save(&scratch, "U1")).crash_at(Some(1));
    let workspace = scratch.open_with(Support::Auto, Arc::new(script));
    assert!(until_killed(|| workspace.apply(&change, &NAMES, 0, &scratch.blobs)).is_none());
    assert_eq!(scratch.observe("p"), PathState::Absent);
    let settled = scratch.open().settle(&change, &NAMES, 0, &scratch.blobs).unwrap();
    assert_eq!(settled, Settled { put_back: true, stored: None });
    assert_eq!(fs::read_to_string(scratch.at("p")).unwrap(), "U1");
    scratch.assert_tidy(&"F2");
}

/// F3: renames reach the disk before data does, and the path is neither before nor after. The temporary is synced
/// before it gets its second name, and has its mode by then.
#[test]
fn f3_a_temporary_is_synced_before_it_is_renamed() {
    assert_eq!(step("sync a draft") + 1, step("finish a draft"));
    assert!(step("set the mode of a file") < step("sync a draft"));
    assert!(step("write a draft") < step("set the mode of a file"));
    assert_eq!(step("finish a draft") + 1, step("exchange"));
}

/// Somebody puts a file of a terabyte into the way, at any step: it is told from what was planned for by its size, never
/// read, and still there afterwards.
#[test]
fn a_sparse_terabyte_in_the_way_is_not_read_and_not_lost() {
    for (after, support) in [
        (AFTER, Support::Auto),
        (AFTER, Support::Never),
        (Thing::Nothing, Support::Auto),
        (Thing::File("before", 0o600), Support::Auto),
    ] {
        let mut met = 0;
        for step in 0.. {
            let scratch = Scratch::quick();
            scratch.put("p", BEFORE);
            let change = scratch.change("p", BEFORE, after);
            let (aside, at) = (scratch.at("aside"), scratch.at("p"));
            let Ok(()) = fs::File::create(&aside).unwrap().set_len(1 << 40) else {
                println!("sparse files: not tried, there are none here");
                return;
            };
            let put = move || fs::rename(&aside, &at).unwrap();
            let script = Arc::new(Script::new().edit_at(step, put));
            let applied = scratch.open_with(support, script.clone()).apply(&change, &NAMES, 0, &scratch.blobs);
            if script.steps().len() <= step {
                break;
            }
            match applied {
                Ok(()) => {}
                Err(FsError::Changed { found: PathState::Opaque, stored: None, .. }) => met += 1,
                Err(other) => panic!("step {step}: {other:?}"),
            }
            let there = fs::read_dir(scratch.root()).unwrap();
            let huge = there.filter(|entry| entry.as_ref().unwrap().metadata().unwrap().len() == 1 << 40);
            assert_eq!(huge.count(), 1, "step {step}: {applied:?}");
        }
        assert!(met > 0, "{after:?}");
    }
}

/// What was written over by it is seen to be so without reading it.
#[test]
fn a_sparse_terabyte_is_no_restored_file() {
    let scratch = Scratch::quick();
    let change = scratch.change("p", BEFORE, AFTER);
    let made = fs::File::create(scratch.at("p")).unwrap().set_len(1 << 40);
    if made.is_ok() {
        assert_eq!(scratch.open().read_back(&change, &scratch.blobs).unwrap().0, PathState::Opaque);
    }
}
