//! A harness around its turns and tools, in under 20 lines.

use checkpoint_core::SessionKey;
use rwd_engine::{Decided, Host, ToolCall};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scratch = tempfile::tempdir()?;
    let (root, data) = (scratch.path().join("project"), scratch.path().join("data"));
    std::fs::create_dir_all(root.join("src"))?;
    let host = Host::new(rwd_engine::open(&root, &data)?.approver(std::sync::Arc::new(Decided)).build());
    let mut session = host.session(SessionKey::new("my-harness", "s1")?);
    session.begin_turn(1, None)?;
    session.before_tool(&ToolCall { name: "bash", id: Some("call_7"), ..ToolCall::default() })?;
    std::fs::remove_dir(root.join("src"))?; // what the tool did
    session.end_turn(None)?;
    session.rewind("t1^")?;
    assert!(root.join("src").is_dir());
    session.undo()?;
    Ok(())
}
