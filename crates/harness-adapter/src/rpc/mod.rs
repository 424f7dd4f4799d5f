//! Lines of JSON-RPC 2.0, as the sidecar and the MCP server read them.

pub(crate) mod envelope;
pub(crate) mod lines;
