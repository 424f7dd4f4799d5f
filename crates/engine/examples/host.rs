//! A harness around its turns and tools, in under 20 lines.

use checkpoint_core::SessionKey;
use rwd_engine::{Decided, Host, ToolCall};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scratch = tempfile::tempdir()?;
    let (root, data) = (scratch.path().join("project"), scratch.path().join("data"));
    std::fs::create_dir(&root)?;
    let host = Host::new(rwd_engine::open(&root, &data)?.approver(std::sync::Arc::new(Decided)).build());
    let mut session = host.session(SessionKey::new("my-harness", "s1")?);
    session.begin_turn(1, None)?;
    session.before_tool(&ToolCall { name: "bash", id: Some("call_7"), ..ToolCall::default() })?;
    std::fs::File::create(root.join("made-by-the-tool"))?;
    session.end_turn(None)?;
    session.rewind("t1^")?;
    session.undo()?;
    Ok(())
}
