//! Checks answers against the published schemas: as much of JSON Schema as they use, and nothing is let through that
//! the checker does not know.

use serde_json::Value;

/// Panics unless `value` is what the schema it names says.
pub(crate) fn check(value: &Value) {
    let name = value["schema"].as_str().expect("every answer names its schema");
    let published = rwd::schemas();
    let allows = |schema: &Value| {
        schema["properties"]["schema"]["enum"].as_array().is_some_and(|names| names.iter().any(|n| n == name))
    };
    let (_, schema) =
        published.iter().find(|(_, schema)| allows(schema)).unwrap_or_else(|| panic!("{name} is not published"));
    conforms(value, schema, schema, name);
    // Fields that the schema does not name are a mistake of ours, although readers ignore them.
    let known = schema["properties"].as_object().unwrap();
    for field in value.as_object().unwrap().keys() {
        assert!(known.contains_key(field), "{name} has {field}, which is not in its schema");
    }
}

pub(crate) fn conforms(value: &Value, schema: &Value, root: &Value, at: &str) {
    let Some(rules) = schema.as_object() else {
        assert_eq!(schema, &Value::Bool(true), "{at}: {schema}");
        return;
    };
    for (rule, wanted) in rules {
        match rule.as_str() {
            "$ref" => {
                let name = wanted.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                conforms(value, &root["$defs"][name], root, at);
            }
            "type" => {
                let types: Vec<&str> = match wanted {
                    Value::String(one) => vec![one],
                    many => many.as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect(),
                };
                assert!(types.iter().any(|t| is(value, t)), "{at}: {value} is no {types:?}");
            }
            "enum" => assert!(wanted.as_array().unwrap().contains(value), "{at}: {value} is none of {wanted}"),
            "properties" => {
                for (field, schema) in wanted.as_object().unwrap() {
                    if let Some(inner) = value.get(field) {
                        conforms(inner, schema, root, &format!("{at}.{field}"));
                    }
                }
            }
            "required" => {
                for field in wanted.as_array().unwrap() {
                    assert!(value.get(field.as_str().unwrap()).is_some(), "{at}: {field} is missing in {value}");
                }
            }
            "items" => {
                for (n, item) in value.as_array().into_iter().flatten().enumerate() {
                    conforms(item, wanted, root, &format!("{at}[{n}]"));
                }
            }
            "anyOf" => {
                let null = wanted.as_array().unwrap().iter().any(|s| s["type"] == "null");
                assert!(null, "{at}: only nullable references are known");
                if !value.is_null() {
                    let other = wanted.as_array().unwrap().iter().find(|s| s["type"] != "null").unwrap();
                    conforms(value, other, root, at);
                }
            }
            "minimum" => assert!(value.is_null() || value.as_f64() >= wanted.as_f64(), "{at}: {value} < {wanted}"),
            "maximum" => assert!(value.is_null() || value.as_f64() <= wanted.as_f64(), "{at}: {value} > {wanted}"),
            "const" => assert_eq!(value, wanted, "{at}"),
            "oneOf" => {
                // Words of an enumeration, each with its meaning.
                let words: Vec<&Value> = wanted.as_array().unwrap().iter().map(|word| &word["const"]).collect();
                assert!(words.contains(&value), "{at}: {value} is none of {words:?}");
            }
            "additionalProperties" => {
                assert_eq!(wanted, &Value::Bool(false), "{at}");
                for field in value.as_object().into_iter().flat_map(serde_json::Map::keys) {
                    assert!(schema["properties"].get(field).is_some(), "{at}: {field} is not known");
                }
            }
            "$schema" | "$defs" | "default" | "title" | "description" | "format" | "writeOnly" | "readOnly" => {}
            other => panic!("{at}: the checker does not know {other}"),
        }
    }
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no such type {other}"),
    }
}

/// A checker that accepts everything would prove nothing.
#[test]
fn the_checker_refuses_what_does_not_conform() {
    let good = serde_json::json!({ "schema": "rwd.verify/1", "checkpoints": 1, "damaged": [], "store": [], "rehashed": false });
    check(&good);
    for (field, bad) in [
        ("checkpoints", serde_json::json!("1")),
        ("checkpoints", serde_json::json!(-1)),
        ("damaged", serde_json::json!([{ "id": "x" }])),
        ("damaged", Value::Null),
        ("schema", serde_json::json!("rwd.nothing/1")),
        ("more", serde_json::json!(1)),
    ] {
        let mut value = good.clone();
        value[field] = bad;
        assert!(std::panic::catch_unwind(|| check(&value)).is_err(), "{value} was accepted");
    }
    let mut missing = good;
    missing.as_object_mut().unwrap().remove("rehashed");
    assert!(std::panic::catch_unwind(|| check(&missing)).is_err());
}
