//! The envelope of JSON-RPC 2.0: which line is a request, a notice or an answer, and what is none.

use serde_json::{Value, json};

/// No JSON.
pub(crate) const PARSE: i64 = -32700;
/// JSON, but no request.
pub(crate) const INVALID: i64 = -32600;
/// No such method.
pub(crate) const UNKNOWN: i64 = -32601;
/// Parameters that do not fit.
pub(crate) const PARAMS: i64 = -32602;
/// A failure inside.
pub(crate) const INTERNAL: i64 = -32603;
/// The engine said no.
pub(crate) const REFUSED: i64 = -32000;

/// One line, understood.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Incoming {
    /// Somebody waits for an answer.
    Request { id: Value, method: String, params: Value },
    /// Nobody does.
    Notice { method: String, params: Value },
    /// To a request of ours: its result, or message and data of its error.
    Answer { id: Value, ended: Result<Value, (String, Value)> },
    /// None of these.
    Bad { id: Value, code: i64, message: String },
}

/// Reads a line.
pub(crate) fn read(line: &[u8]) -> Incoming {
    let bad = |code, message: String| Incoming::Bad { id: Value::Null, code, message };
    let Ok(text) = std::str::from_utf8(line) else { return bad(PARSE, "the line is no UTF-8".to_owned()) };
    let message: Value = match serde_json::from_str(text) {
        Ok(message) => message,
        Err(error) => return bad(PARSE, format!("the line is no JSON: {error}")),
    };
    let Value::Object(mut fields) = message else {
        return bad(INVALID, "a line holds one object; arrays of requests are not taken".to_owned());
    };
    let id = fields.remove("id");
    let known = id.clone().filter(|id| id.is_string() || id.is_number()).unwrap_or_default();
    let bad = |message: &str| Incoming::Bad { id: known.clone(), code: INVALID, message: message.to_owned() };
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return bad("jsonrpc must be \"2.0\"");
    }
    if id.as_ref().is_some_and(|id| !(id.is_string() || id.is_number())) && fields.contains_key("method") {
        return bad("an id is a string or a number");
    }
    let params = fields.remove("params").unwrap_or_else(|| json!({}));
    match (fields.remove("method"), id) {
        (Some(Value::String(_)), _) if !params.is_object() => bad("params must be an object"),
        (Some(Value::String(method)), Some(id)) => Incoming::Request { id, method, params },
        (Some(Value::String(method)), None) => Incoming::Notice { method, params },
        (Some(_), _) => bad("method must be a string"),
        (None, Some(id)) => match (fields.remove("result"), fields.remove("error")) {
            (Some(result), None) => Incoming::Answer { id, ended: Ok(result) },
            (None, Some(error)) => {
                let message = error.get("message").and_then(Value::as_str).unwrap_or("failed").to_owned();
                let data = error.get("data").cloned().unwrap_or_default();
                Incoming::Answer { id, ended: Err((message, data)) }
            }
            _ => bad("neither a method, nor a result, nor an error"),
        },
        (None, None) => bad("neither a method nor an id"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_request_is_told_apart() {
        let code = |line: &[u8]| match read(line) {
            Incoming::Bad { id, code, .. } => (code, id),
            other => panic!("{other:?}"),
        };
        for (line, expected) in [
            (&b"{"[..], PARSE),
            (b"\xff", PARSE),
            (b"", PARSE),
            (b"[]", INVALID),
            (b"7", INVALID),
            (b"{}", INVALID),
            (br#"{"jsonrpc":"1.0","method":"m"}"#, INVALID),
            (br#"{"jsonrpc":"2.0"}"#, INVALID),
            (br#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, INVALID),
        ] {
            assert_eq!(code(line), (expected, Value::Null), "{}", String::from_utf8_lossy(line));
        }
        assert_eq!(code(br#"{"jsonrpc":"2.0","id":3,"method":7}"#), (INVALID, json!(3)));
        assert_eq!(code(br#"{"jsonrpc":"2.0","id":3,"method":"m","params":[1]}"#), (INVALID, json!(3)));
        assert_eq!(code(br#"{"jsonrpc":"2.0","id":3}"#), (INVALID, json!(3)));
        let deep = vec![b'['; 100_000];
        assert_eq!(code(&deep).0, PARSE);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _read = read(&bytes);
        }

        #[test]
        fn json_of_any_shape_is_read_without_a_panic(
            text in r#"\{("(jsonrpc|id|method|params|result|error)":("2.0"|"m"|null|7|\{\}|\[\]),?){0,6}\}"#
        ) {
            let _read = read(text.as_bytes());
        }
    }
}
