//! JSON schemas of the messages, generated from their types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::protocol;

/// The schema of a type as it is sent, or as it is taken.
pub(super) fn of<T: JsonSchema>(sent: bool) -> Value {
    let settings = SchemaSettings::default();
    let settings = if sent { settings.for_serialize() } else { settings.for_deserialize() };
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// The schemas of parameters and results of every method, of every callback and of every notice, and of errors' data.
pub fn schemas() -> Value {
    let mut all = Vec::new();
    protocol::method_schemas(&mut all);
    protocol::callback_schemas(&mut all);
    protocol::notice_schemas(&mut all);
    all.push(("error.data".to_owned(), of::<protocol::Problem>(true)));
    let messages: serde_json::Map<String, Value> = all.into_iter().collect();
    json!({
        "title": "rwd.sidecar/1",
        "protocol": protocol::PROTOCOL,
        "methods": protocol::METHODS,
        "callbacks": protocol::CALLBACKS,
        "notices": protocol::NOTICES,
        "messages": messages,
    })
}
