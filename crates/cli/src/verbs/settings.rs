//! `rwd config`.

use crate::args::ConfigVerb;
use crate::compose;
use crate::config::{self, Settings, Value};
use crate::error::CliError;
use crate::exit;
use crate::run::Run;
use crate::text::put;
use crate::wire;

pub(crate) fn config(run: &Run, verb: &ConfigVerb) -> Result<u8, CliError> {
    // Settings exist without a workspace too; only a missing one is no reason to fail.
    let root = match compose::find(run) {
        Ok(located) => Some(located.root().to_owned()),
        Err(CliError::NoWorkspace { .. } | CliError::Moved { .. }) => None,
        Err(error) => return Err(error),
    };
    match verb {
        ConfigVerb::List { origin } => list(run, root.as_deref(), None, *origin),
        ConfigVerb::Get { key } => {
            known(key)?;
            list(run, root.as_deref(), Some(key), false)
        }
        ConfigVerb::Set { key, value } => set(run, key, value),
    }
}

fn known(name: &str) -> Result<&'static config::Key, CliError> {
    config::key(name).ok_or_else(|| CliError::Usage {
        code: "bad-config",
        message: format!("there is no setting {name:?}"),
        hint: Some(format!("there is: {}", config::KEYS.iter().map(|key| key.name).collect::<Vec<_>>().join("  "))),
    })
}

fn about(name: &str) -> &'static str {
    config::key(name).map_or("", |key| key.about)
}

fn list(run: &Run, root: Option<&std::path::Path>, only: Option<&str>, origin: bool) -> Result<u8, CliError> {
    let settings = Settings::load(&run.world, root, run.global.force)?;
    for warning in &settings.warnings {
        run.out.remark(&format!("warning: {}", crate::wire::shown(warning)));
    }
    let wanted: Vec<_> = settings.all().filter(|(name, ..)| only.is_none_or(|only| only == *name)).collect();
    let answer = wire::ConfigList {
        settings: wanted
            .iter()
            .map(|(key, value, origin)| wire::SettingEntry {
                key,
                value: value.json(),
                origin: origin.to_string(),
                about: about(key),
            })
            .collect(),
        warnings: settings.warnings.clone(),
    };
    run.out.answer(&answer, |_| {
        let mut out = String::new();
        for (name, value, from) in &wanted {
            match (only, origin) {
                (Some(_), _) => put!(out, "{value}\n"),
                (None, true) => put!(out, "{name} = {value}  # {from}\n"),
                (None, false) if **value == Value::Unset => put!(out, "# {name} is not set\n"),
                (None, false) => put!(out, "{name} = {value}\n"),
            }
        }
        out
    })?;
    Ok(exit::OK)
}

fn set(run: &Run, name: &str, text: &str) -> Result<u8, CliError> {
    let key = known(name)?;
    if name.starts_with("agent.") && !run.world.harnesses().is_empty() {
        return Err(CliError::Agent {
            message: "a process of an agent may not change what agents may do".to_owned(),
            hint: format!("type it in a terminal of your own: {}", run.typed.with(&[])),
        });
    }
    let origin = || "the command line".to_owned();
    let value = key.read_text(text).map_err(|why| CliError::Config { key: name.to_owned(), why, origin: origin() })?;
    let file =
        config::user_file(&run.world).ok_or_else(|| CliError::usage("no-config", "there is no home directory"))?;
    config::set(&file, key, &value)?;
    let entry =
        wire::SettingEntry { key: key.name, value: value.json(), origin: file.display().to_string(), about: key.about };
    let answer = wire::ConfigList { settings: vec![entry], warnings: Vec::new() };
    run.out.answer(&answer, |_| format!("{name} = {value}\n"))?;
    Ok(exit::OK)
}
