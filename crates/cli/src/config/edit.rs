//! `rwd config set`: changes one line of the user's file and leaves the rest as it was typed.

use std::path::Path;

use super::keys::{Key, Value};
use super::{Origin, bad, flatten, read};
use crate::error::CliError;

/// Writes a setting into a file, which is made when it is missing.
pub(crate) fn set(path: &Path, key: &Key, value: &Value) -> Result<(), CliError> {
    let origin = Origin::User(path.to_owned());
    let failed = |source: std::io::Error| CliError::failure(format!("cannot change {}", path.display()), source);
    let before = read(path).map_err(failed)?.unwrap_or_default();
    flatten(&before, &origin)?;
    let after = edited(&before, key.name, &value.to_string());
    let holds = flatten(&after, &origin).ok().and_then(|all| {
        let (_, found) = all.into_iter().find(|(name, _)| name == key.name)?;
        key.read(&found).ok()
    });
    if holds.as_ref() != Some(value) {
        return Err(bad(key.name, "it is written in a way that cannot be changed by line; edit the file", &origin));
    }
    let dir = path.parent().unwrap_or_else(|| Path::new("/"));
    std::fs::create_dir_all(dir).map_err(failed)?;
    // A file that is a link into somebody's collection of settings stays one.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    durable_fs::replace(&target, after.as_bytes(), durable_fs::Access::Private, durable_fs::Durability::Synced)
        .map_err(|source| CliError::failure(format!("cannot change {}", path.display()), source))
}

/// The text with `name = value` in its table.
fn edited(text: &str, name: &str, value: &str) -> String {
    let (table, leaf) = name.split_once('.').unwrap_or(("", name));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let header = format!("[{table}]");
    let mut within = table.is_empty();
    let mut end_of_table = None;
    for (at, line) in lines.iter().enumerate() {
        let plain = line.split('#').next().unwrap_or_default().trim();
        if plain.starts_with('[') {
            within = plain.replace(' ', "") == header;
        }
        let assigned = plain.split_once('=').map(|(left, _)| left.trim());
        if within && assigned == Some(leaf) || !table.is_empty() && assigned == Some(name) {
            let left = assigned.unwrap_or(leaf).to_owned();
            let whole = format!("{left} = {value}");
            if let Some(line) = lines.get_mut(at) {
                *line = whole;
            }
            return joined(&lines);
        }
        if within && !plain.is_empty() {
            end_of_table = Some(at + 1);
        }
    }
    if let Some(at) = end_of_table {
        lines.insert(at, format!("{leaf} = {value}"));
    } else {
        if lines.last().is_some_and(|line| !line.is_empty()) {
            lines.push(String::new());
        }
        lines.push(header);
        lines.push(format!("{leaf} = {value}"));
    }
    joined(&lines)
}

fn joined(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests write files")]
mod tests {
    use super::*;
    use crate::config::key;

    #[test]
    fn a_line_is_changed_and_the_rest_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a/config.toml");
        let guard = key("restore.guard").unwrap();
        let warn = Value::Text("warn".into());
        set(&file, guard, &warn).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "[restore]\nguard = \"warn\"\n");
        std::fs::write(&file, "# mine\n[restore] # here\nconfirm = \"ask\"\n\n[capture]\nexcludes = [\"x\"]\n")
            .unwrap();
        set(&file, guard, &warn).unwrap();
        let odd = Value::List(vec!["a\"b".into(), "é\n".into()]);
        set(&file, key("capture.excludes").unwrap(), &odd).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(
            text,
            "# mine\n[restore] # here\nconfirm = \"ask\"\nguard = \"warn\"\n\n[capture]\nexcludes = [\"a\\\"b\", \"é\\n\"]\n"
        );
    }

    #[test]
    fn what_cannot_be_changed_by_line_is_refused_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        let before = "restore = { guard = \"warn\" }\n";
        std::fs::write(&file, before).unwrap();
        assert!(set(&file, key("restore.confirm").unwrap(), &Value::Text("plan".into())).is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    }
}
