//! A server of the Model Context Protocol on two pipes (design § 10, docs/mcp.md).
//!
//! It knows the protocol and nothing of rwd: what the tools are and do is left to a [`Desk`]. One JSON-RPC message a
//! line; requests are carried out one after the other, while pings, cancellations and the answers of people are taken
//! in meanwhile. Only what a stdio server needs is spoken: no HTTP, no sampling, no subscriptions.
//!
//! ```
//! use harness_adapter::mcp::{Answer, Desk, Document, Request, Resource, Server, Tool};
//! use serde_json::{Map, Value, json};
//!
//! #[derive(Debug)]
//! struct Echo;
//!
//! impl Desk for Echo {
//!     fn tools(&self) -> Vec<Tool> {
//!         vec![Tool {
//!             name: "echo",
//!             title: "Say it again",
//!             about: "Says it again.",
//!             input: json!({"type": "object"}),
//!             output: json!({"type": "object"}),
//!             reads_only: true,
//!             destroys: false,
//!             repeatable: true,
//!         }]
//!     }
//!     fn call(&self, _: &str, arguments: Map<String, Value>, _: &std::sync::Arc<Request>) -> Answer {
//!         Answer { text: "again".into(), structured: Some(arguments.into()), error: None }
//!     }
//!     fn resources(&self) -> (Vec<Resource>, Vec<Resource>) {
//!         Default::default()
//!     }
//!     fn read(&self, _: &str, _: &std::sync::Arc<Request>) -> Option<Document> {
//!         None
//!     }
//! }
//!
//! let server = Server { desk: std::sync::Arc::new(Echo), version: "1", instructions: "", stopped: Box::new(|| false) };
//! server.serve(Box::new(std::io::empty()), Box::new(std::io::sink()));
//! ```

mod client;
mod desk;
mod request;
mod server;
#[cfg(test)]
mod server_tests;

pub use desk::{Answer, Desk, Document, Resource, Tool};
pub use request::{Request, Said};
pub use server::{Server, VERSIONS};
