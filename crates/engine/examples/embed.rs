//! Undo for one directory: save, let something happen, go back, take that back.

use std::{error::Error, fs, io::Write, sync::Arc};

use checkpoint_core::{PointKind, RestoreRequest, ReverseRequest, SaveRequest, SessionKey};

fn main() -> Result<(), Box<dyn Error>> {
    let scratch = tempfile::tempdir()?;
    let (root, data) = (scratch.path().join("project"), scratch.path().join("data"));
    fs::create_dir(&root)?;
    let engine = rwd_engine::open(&root, &data)?.approver(Arc::new(rwd_engine::Decided)).build();

    fs::File::create(root.join("notes"))?.write_all(b"mine")?;
    let save = SaveRequest::of(SessionKey::local(), PointKind::Manual);
    let before = engine.save(&save)?.point.id.to_string();
    fs::remove_file(root.join("notes"))?;
    engine.save(&save)?;

    engine.restore(&RestoreRequest { target: before, ..RestoreRequest::default() })?;
    assert_eq!(fs::read(root.join("notes"))?, b"mine");
    engine.undo(&ReverseRequest::default())?;
    assert!(!root.join("notes").exists());
    Ok(())
}
