//! What a server is composed with.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::request::Request;

/// A tool, as `tools/list` tells it. None reaches beyond this machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Tool {
    /// What it is called by.
    pub name: &'static str,
    /// What people are shown.
    pub title: &'static str,
    /// What the model is told.
    pub about: &'static str,
    /// JSON schema of its arguments: an object.
    pub input: Value,
    /// JSON schema of its structured answer: an object.
    pub output: Value,
    /// It changes nothing.
    pub reads_only: bool,
    /// It may overwrite or remove.
    pub destroys: bool,
    /// Done twice it does no more than once.
    pub repeatable: bool,
}

/// A resource, or with `{…}` in its address a template of them. All are JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resource {
    /// Its address.
    pub uri: &'static str,
    /// A short name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
}

/// What a tool answers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answer {
    /// For the model, short.
    pub text: String,
    /// The same for programs, as the tool's output schema says; `None` where it failed.
    pub structured: Option<Value>,
    /// Why it failed, for programs. The model may call again with other arguments.
    pub error: Option<Value>,
}

/// A resource's content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document {
    /// JSON.
    pub text: String,
}

/// Carries tools out.
pub trait Desk: fmt::Debug + Send + Sync {
    /// The tools, always the same.
    fn tools(&self) -> Vec<Tool>;

    /// Carries one out; `name` is one of [`Desk::tools`]. Calls come one after the other.
    fn call(&self, name: &str, arguments: Map<String, Value>, request: &Arc<Request>) -> Answer;

    /// Resources, and templates of resources.
    fn resources(&self) -> (Vec<Resource>, Vec<Resource>);

    /// A resource; `None` where there is none of that address.
    fn read(&self, uri: &str, request: &Arc<Request>) -> Option<Document>;
}
