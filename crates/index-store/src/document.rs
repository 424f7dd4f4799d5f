//! Documents: how a value becomes JSON and back without losing what a newer version wrote into it.

use checkpoint_core::IndexError;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    format::Format,
    rows::{Rows, Table},
};

/// Writes a value.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<String, IndexError> {
    serde_json::to_string(value).map_err(|source| unwritable(&source))
}

/// Reads a document. One that this version cannot understand is damaged, or of a newer format if the store is.
pub(crate) fn decode<T: DeserializeOwned>(
    format: Format,
    table: Table,
    key: &str,
    document: &str,
) -> Result<T, IndexError> {
    serde_json::from_str(document).map_err(|source| {
        if format.is_newer() {
            format.too_new()
        } else {
            IndexError::Damaged { what: format!("row {key:?} of table {}", table.name()), source: Box::new(source) }
        }
    })
}

/// Reads one row.
pub(crate) fn load<T: DeserializeOwned>(
    rows: &(impl Rows + ?Sized),
    table: Table,
    key: &str,
) -> Result<Option<T>, IndexError> {
    rows.get(table, key)?.map(|document| decode(rows.format(), table, key, &document)).transpose()
}

/// The document that replaces `old`: `new`, with what this version does not know of `old` kept.
///
/// Every field is always written, so a field of `old` that `new` lacks is unknown here and stays. A field whose known
/// part is the same in both keeps its stored form, unknown fields inside it included. A field that changed is replaced
/// as a whole: what is unknown inside it described the value it had.
pub(crate) fn replace<T: Serialize + DeserializeOwned>(
    format: Format,
    table: Table,
    key: &str,
    old: &str,
    new: &T,
) -> Result<String, IndexError> {
    let known: T = decode(format, table, key, old)?;
    let stored: Value = decode(format, table, key, old)?;
    let known = serde_json::to_value(known).map_err(|source| unwritable(&source))?;
    let new = serde_json::to_value(new).map_err(|source| unwritable(&source))?;
    encode(&merge(stored, &known, new))
}

/// See [`replace`]: `stored` as it was written, `known` what this version makes of it.
pub(crate) fn merge(stored: Value, known: &Value, mut new: Value) -> Value {
    if let (Value::Object(stored), Value::Object(fields)) = (stored, &mut new) {
        for (name, value) in stored {
            match fields.get_mut(&name) {
                None => {
                    fields.insert(name, value);
                }
                Some(field) if known.get(&name) == Some(field) => *field = value,
                Some(_) => {}
            }
        }
    }
    new
}

fn unwritable(source: &serde_json::Error) -> IndexError {
    IndexError::Misfit { why: format!("it cannot be written as JSON: {source}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_fields_stay_with_the_value_they_describe() {
        let stored = json!({"a": {"x": 1, "new": 2}, "b": {"x": 1, "new": 2}, "new": 3});
        let known = json!({"a": {"x": 1}, "b": {"x": 1}});
        let new = json!({"a": {"x": 1}, "b": {"x": 9}});
        assert_eq!(merge(stored, &known, new), json!({"a": {"x": 1, "new": 2}, "b": {"x": 9}, "new": 3}));
    }
}
