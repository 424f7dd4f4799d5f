//! Rules about crates: who may depend on whom, and what every manifest inherits.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Breach, Tree};

/// Members and the members each may depend on. Siblings do not know each other: `rwd-engine`
/// puts those together that undo needs, and only the command line knows them all.
const LAYERS: &[(&str, &[&str])] = &[
    ("checkpoint-core", &[]),
    ("durable-fs", &[]),
    ("workspace-fs", &["checkpoint-core", "durable-fs"]),
    ("snapshot-git", &["checkpoint-core", "durable-fs"]),
    ("index-store", &["checkpoint-core", "durable-fs"]),
    ("harness-adapter", &["checkpoint-core", "durable-fs"]),
    ("rwd-engine", &["checkpoint-core", "durable-fs", "workspace-fs", "snapshot-git", "index-store"]),
    (
        "rwd",
        &[
            "checkpoint-core",
            "durable-fs",
            "workspace-fs",
            "snapshot-git",
            "index-store",
            "harness-adapter",
            "rwd-engine",
        ],
    ),
    ("testkit", &["checkpoint-core", "durable-fs"]),
    ("xtask", &["rwd"]),
];

/// A development dependency every crate may have beside its layer.
const TESTS_ONLY: &str = "testkit";

/// The engine is tested against the real parts there, so it may have any of them for its tests.
const COMPOSES: &str = "testkit";

/// Every dependency between members is one that the layers allow.
pub(super) fn layers(metadata: &Value) -> Vec<Breach> {
    let packages = array(&metadata["packages"]);
    let members: BTreeSet<_> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let mut breaches = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = LAYERS.iter().find(|(member, _)| *member == name) else {
            breaches.push(format!("crate {name} has no place in the layers; give it one in xtask/src/tidy/crates.rs"));
            continue;
        };
        for dependency in array(&package["dependencies"]) {
            let on = dependency["name"].as_str().unwrap_or_default();
            let for_tests = dependency["kind"].as_str() == Some("dev");
            if members.contains(on)
                && !allowed.contains(&on)
                && !(for_tests && (on == TESTS_ONLY || name == COMPOSES && on != "rwd"))
            {
                breaches.push(format!("{name} must not depend on {on}"));
            }
        }
    }
    breaches
}

/// Every manifest takes lints and versions from the workspace, and the workspace forbids unsafe code.
pub(super) fn inherited(tree: &Tree, root: &toml::Table) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let forbids = root.get("workspace").and_then(|it| it.get("lints")?.get("rust")?.get("unsafe_code")?.as_str());
    if forbids != Some("forbid") {
        breaches.push("the workspace does not forbid unsafe code".to_owned());
    }
    for (path, text) in &tree.text {
        if !(path.starts_with("crates/") || path.starts_with("xtask/")) || !path.ends_with("/Cargo.toml") {
            continue;
        }
        let manifest: toml::Table = match text.parse() {
            Ok(manifest) => manifest,
            Err(error) => {
                breaches.push(format!("{path}: {error}"));
                continue;
            }
        };
        if manifest.get("lints").and_then(|lints| lints.get("workspace")) != Some(&toml::Value::Boolean(true)) {
            breaches.push(format!("{path} does not inherit the lints, so nothing forbids unsafe code there"));
        }
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for (name, spec) in manifest.get(kind).and_then(toml::Value::as_table).into_iter().flatten() {
                if spec.get("workspace") != Some(&toml::Value::Boolean(true)) {
                    breaches.push(format!("{path}: {name} must come from [workspace.dependencies]"));
                }
            }
        }
    }
    breaches
}

/// Every workspace dependency is used by a member.
pub(super) fn unused(metadata: &Value, root: &toml::Table) -> Vec<Breach> {
    let used: BTreeSet<_> = array(&metadata["packages"])
        .iter()
        .flat_map(|package| array(&package["dependencies"]))
        .filter_map(|dependency| dependency["name"].as_str())
        .collect();
    declared(root)
        .filter(|(name, spec)| spec.get("path").is_none() && !used.contains(name))
        .map(|(name, _)| format!("Cargo.toml: no member uses {name}"))
        .collect()
}

/// `[workspace.dependencies]`.
pub(super) fn declared(root: &toml::Table) -> impl Iterator<Item = (&str, &toml::Value)> {
    let declared = root.get("workspace").and_then(|it| it.get("dependencies")?.as_table());
    declared.into_iter().flatten().map(|(name, spec)| (name.as_str(), spec))
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sibling_or_a_step_upwards_is_refused() {
        let package = |name: &str, on: &str, kind: Option<&str>| json!({"name": name, "dependencies": [{"name": on, "kind": kind}]});
        let all = |one: Value| {
            let others = ["checkpoint-core", "snapshot-git", "testkit", "rwd"]
                .map(|name| json!({"name": name, "dependencies": []}));
            let packages: Vec<_> = others.into_iter().chain([one]).collect();
            json!({ "packages": packages })
        };
        assert!(layers(&all(package("index-store", "checkpoint-core", None))).is_empty());
        assert!(layers(&all(package("index-store", "testkit", Some("dev")))).is_empty());
        assert_eq!(layers(&all(package("index-store", "testkit", None))), ["index-store must not depend on testkit"]);
        assert_eq!(layers(&all(package("durable-fs", "rwd", Some("dev")))), ["durable-fs must not depend on rwd"]);
        assert!(layers(&all(package("testkit", "snapshot-git", Some("dev")))).is_empty());
        assert_eq!(layers(&all(package("testkit", "snapshot-git", None))).len(), 1);
        assert_eq!(layers(&all(package("testkit", "rwd", Some("dev")))).len(), 1);
        assert_eq!(layers(&all(package("newcomer", "serde", None))).len(), 1);
    }

    #[test]
    fn a_manifest_of_its_own_mind_is_refused() {
        let root: toml::Table = "[workspace.lints.rust]\nunsafe_code = 'forbid'".parse().unwrap();
        let good = "[lints]\nworkspace = true\n[dependencies]\na.workspace = true";
        assert!(inherited(&Tree::of(&[("crates/a/Cargo.toml", good)]), &root).is_empty());
        let bad = "[dependencies]\na = '1'";
        assert_eq!(inherited(&Tree::of(&[("crates/a/Cargo.toml", bad)]), &root).len(), 2);
        assert_eq!(inherited(&Tree::of(&[]), &toml::Table::new()).len(), 1);
    }

    #[test]
    fn a_dependency_nobody_uses_is_named() {
        let root: toml::Table = "[workspace.dependencies]\na = '1'\nb = { path = 'b' }\nc = '1'".parse().unwrap();
        let metadata = json!({"packages": [{"name": "x", "dependencies": [{"name": "c"}]}]});
        assert_eq!(unused(&metadata, &root), ["Cargo.toml: no member uses a"]);
    }
}
