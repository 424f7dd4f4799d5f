//! The conformance suite of the trait.

use checkpoint_core::WorkspaceFs;
use tempfile::TempDir;
use workspace_fs::{Options, RealWorkspace, Support};

#[test]
fn keeps_the_contract_with_and_without_exchange() {
    for support in [Support::Auto, Support::Never] {
        let dirs = std::cell::RefCell::new(Vec::<TempDir>::new());
        testkit::workspace_suite::run(&|| {
            let dir = tempfile::tempdir().unwrap();
            let options = Options { exchange: support, no_replace: support, ..Options::default() };
            let workspace: Box<dyn WorkspaceFs> = Box::new(RealWorkspace::with_options(dir.path(), options).unwrap());
            dirs.borrow_mut().push(dir);
            workspace
        });
        for dir in dirs.into_inner() {
            let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
            assert!(names.iter().all(|name| !name.as_encoded_bytes().starts_with(b".rwd")), "{names:?}");
        }
    }
}
