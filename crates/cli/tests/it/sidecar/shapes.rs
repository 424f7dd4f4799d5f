//! The protocol and `--json` are two mouths of one engine: who reads one can read the other.

use std::collections::BTreeMap;

use serde_json::Value;

/// Fields below `schema`, each with its types; what a reference means is looked into.
fn fields(schema: &Value, root: &Value, at: &str, found: &mut BTreeMap<String, String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.strip_prefix("#/$defs/").unwrap();
        return fields(&root["$defs"][name], root, at, found);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        for choice in choices.iter().filter(|choice| choice["type"] != "null") {
            fields(choice, root, at, found);
        }
        return;
    }
    // Null and absent are the same to a reader of either.
    if let Some(types) = schema.get("type") {
        let types = types.as_array().cloned().unwrap_or_else(|| vec![types.clone()]);
        let types: Vec<&str> = types.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect();
        found.insert(at.to_owned(), types.join(" or "));
    }
    for (field, inner) in schema["properties"].as_object().into_iter().flatten() {
        fields(inner, root, &format!("{at}.{field}"), found);
    }
    if schema["items"].is_object() {
        fields(&schema["items"], root, &format!("{at}[]"), found);
    }
}

fn of(schema: &Value, root: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    fields(schema, root, "", &mut found);
    assert!(found.len() > 4, "{schema}");
    found
}

/// Holds both together: what only one of them has is named here, and nothing else differs.
fn alike(what: &str, protocol: &BTreeMap<String, String>, cli: &BTreeMap<String, String>, only: [&[&str]; 2]) {
    let missing = |from: &BTreeMap<String, String>, other: &BTreeMap<String, String>| {
        let names = from.keys().filter(|field| !other.contains_key(*field));
        names.map(|field| field.trim_start_matches('.').to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(missing(protocol, cli), only[0], "{what}: only in the protocol");
    assert_eq!(missing(cli, protocol), only[1], "{what}: only in --json");
    for (field, types) in protocol.iter().filter(|(field, _)| !field.is_empty()) {
        if let Some(other) = cli.get(field) {
            assert_eq!(types, other, "{what}: {field}");
        }
    }
}

#[test]
fn answers_of_the_protocol_have_the_fields_of_the_command_line() {
    let protocol = rwd::sidecar_schemas();
    let published: BTreeMap<String, Value> = rwd::schemas().into_iter().collect();
    let message = |name: &str| {
        let schema = &protocol["messages"][name];
        of(schema, schema)
    };
    let answer = |name: &str| of(&published[name], &published[name]);
    alike(
        "preview",
        &message("preview.result"),
        &answer("rwd.preview/1"),
        [&["config"], &["apply", "decisions", "decisions[]", "schema", "unfinished"]],
    );
    alike(
        "restore",
        &message("restore.result"),
        &answer("rwd.to/1"),
        [&["nth"], &["childPath", "childPath.path", "childPath.pathBytes", "continue", "schema", "undo"]],
    );
    let list = &protocol["messages"]["list.result"];
    let log = &published["rwd.log/1"];
    let entry = |root: &Value, name: &str| of(&root["$defs"][name], root);
    alike(
        "point",
        &entry(list, "PointEntry"),
        &entry(log, "PointEntry"),
        [
            &[
                "callId",
                "changedPaths",
                "changedPaths[]",
                "changedPaths[].path",
                "changedPaths[].pathBytes",
                "config",
                "files",
                "seq",
            ],
            &[],
        ],
    );
    alike("gap", &entry(list, "GapEntry"), &entry(log, "GapEntry"), [&[], &[]]);
    alike("operation", &entry(list, "OperationEntry"), &entry(log, "OperationEntry"), [&["nth"], &[]]);
}
