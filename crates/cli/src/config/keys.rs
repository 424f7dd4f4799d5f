//! The settings there are.

use std::fmt;

/// The value of a setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    /// Not set; the meaning depends on the workspace.
    Unset,
    Bool(bool),
    Int(u64),
    Text(String),
    List(Vec<String>),
}

impl fmt::Display for Value {
    /// As TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => f.write_str("unset"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::List(list) => write!(f, "[{}]", list.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ")),
        }
    }
}

impl Value {
    pub(crate) fn json(&self) -> serde_json::Value {
        match self {
            Self::Unset => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Int(value) => (*value).into(),
            Self::Text(text) => text.as_str().into(),
            Self::List(list) => list.clone().into(),
        }
    }
}

/// A basic string of TOML; JSON's escapes are a subset of it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// What a value looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Bool,
    /// A number.
    Count,
    /// A number of bytes: also as text, `2 MiB`.
    Bytes,
    /// One of these, from lax to strict where that matters.
    Choice(&'static [&'static str]),
    List,
}

/// What a file of the workspace may say: it comes with the project, and an agent can write it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trust {
    /// Nothing.
    No,
    /// Anything: it concerns only untracked paths that no stored point holds.
    Yes,
    /// Only a stricter value than so far.
    Stricter,
}

impl Trust {
    pub(crate) fn admits(self, key: &Key, now: Option<&Value>, new: &Value) -> bool {
        match self {
            Self::No => false,
            Self::Yes => true,
            Self::Stricter => match (key.kind, now, new) {
                (Kind::Choice(order), Some(Value::Text(now)), Value::Text(new)) => {
                    let rank = |text: &str| order.iter().position(|choice| *choice == text);
                    rank(new) >= rank(now)
                }
                (Kind::Bool, _, Value::Bool(new)) => *new,
                _ => false,
            },
        }
    }
}

/// One setting.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its full name.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: fn() -> Value,
    pub(crate) workspace: Trust,
    /// What it means, for the manual.
    pub(crate) about: &'static str,
}

/// All settings, in order of name.
pub(crate) const KEYS: &[Key] = &[
    Key {
        name: "agent.may_restore",
        kind: Kind::Choice(&["allow", "ask", "never"]),
        default: || Value::Text("ask".into()),
        workspace: Trust::Stricter,
        about: "what a process of an agent may restore",
    },
    Key {
        name: "capture.excludes",
        kind: Kind::List,
        default: || Value::Unset,
        workspace: Trust::Yes,
        about: "globs that are left out",
    },
    Key {
        name: "capture.free_space_floor",
        kind: Kind::Bytes,
        default: || Value::Int(64 << 20),
        workspace: Trust::No,
        about: "free bytes that must remain",
    },
    Key {
        name: "capture.include",
        kind: Kind::List,
        default: || Value::List(Vec::new()),
        workspace: Trust::No,
        about: "globs that are captured although a rule ignores them",
    },
    Key {
        name: "capture.nested",
        kind: Kind::Choice(&["contents", "boundary"]),
        default: || Value::Unset,
        workspace: Trust::No,
        about: "how repositories inside the workspace are captured",
    },
    Key {
        name: "capture.seed_from_git",
        kind: Kind::Bool,
        default: || Value::Bool(true),
        workspace: Trust::No,
        about: "let the first capture of a git worktree use what git's index and packs know",
    },
    Key {
        name: "capture.store_max_bytes",
        kind: Kind::Bytes,
        default: || Value::Int(2 << 30),
        workspace: Trust::No,
        about: "ceiling of a store's own bytes",
    },
    Key {
        name: "capture.untracked_max_bytes",
        kind: Kind::Bytes,
        default: || Value::Int(2 << 20),
        workspace: Trust::Yes,
        about: "untracked files of this size and above are left out",
    },
    Key {
        name: "capture.verify_by_hash",
        kind: Kind::Bool,
        default: || Value::Bool(false),
        workspace: Trust::Stricter,
        about: "read every file at every capture",
    },
    Key {
        name: "capture.watch",
        kind: Kind::Bool,
        default: || Value::Bool(true),
        workspace: Trust::No,
        about: "in a process that stays: points before a tool look only where the system says that something changed",
    },
    Key {
        name: "hook.deadline_ms",
        kind: Kind::Count,
        default: || Value::Int(1500),
        workspace: Trust::No,
        about: "how long an agent waits for a capture before a tool or after one; at the start and the end of a turn four times as long",
    },
    Key {
        name: "hook.on_capture_failure",
        kind: Kind::Choice(&["allow", "block"]),
        default: || Value::Text("allow".into()),
        workspace: Trust::Stricter,
        about: "whether a tool may run that changes files and could not be captured before",
    },
    Key {
        name: "index.kind",
        kind: Kind::Choice(&["sqlite", "json"]),
        default: || Value::Unset,
        workspace: Trust::No,
        about: "kind of index for new workspaces",
    },
    Key {
        name: "lock.wait_ms",
        kind: Kind::Count,
        default: || Value::Int(10_000),
        workspace: Trust::No,
        about: "how long to wait for another process",
    },
    Key {
        name: "restore.confirm",
        kind: Kind::Choice(&["never", "ask", "plan"]),
        default: || Value::Text("ask".into()),
        workspace: Trust::Stricter,
        about: "whether a restore must be confirmed; plan: --yes counts only with --plan",
    },
    Key {
        name: "restore.files",
        kind: Kind::Choice(&["everywhere", "git-only"]),
        default: || Value::Text("everywhere".into()),
        workspace: Trust::Stricter,
        about: "where files are restored; git-only: outside git worktrees only the conversation goes back",
    },
    Key {
        name: "restore.guard",
        kind: Kind::Choice(&["off", "warn", "require"]),
        default: || Value::Text("require".into()),
        workspace: Trust::Stricter,
        about: "what happens when a path cannot be guarded",
    },
    Key {
        name: "retention.max_bytes",
        kind: Kind::Bytes,
        default: || Value::Int(512 << 20),
        workspace: Trust::No,
        about: "soft ceiling of the data directory",
    },
    Key {
        name: "retention.max_checkpoints",
        kind: Kind::Count,
        default: || Value::Int(50),
        workspace: Trust::No,
        about: "mutation, step and auto points a session keeps",
    },
    Key {
        name: "retention.max_gaps",
        kind: Kind::Count,
        default: || Value::Int(500),
        workspace: Trust::No,
        about: "gaps a session keeps",
    },
    Key {
        name: "retention.max_turns",
        kind: Kind::Count,
        default: || Value::Int(500),
        workspace: Trust::No,
        about: "turn points and manual points a session keeps",
    },
    Key {
        name: "retention.on_turn_end",
        kind: Kind::Bool,
        default: || Value::Bool(true),
        workspace: Trust::No,
        about: "look at the limits after each turn, not only from time to time",
    },
    Key {
        name: "run.interval_ms",
        kind: Kind::Count,
        default: || Value::Int(30_000),
        workspace: Trust::No,
        about: "how often rwd run makes a point while its command runs; 0: never",
    },
];

/// The setting of that name.
pub(crate) fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

impl Key {
    /// Its variable, as `RWD_CAPTURE_EXCLUDES`.
    pub(crate) fn variable(&self) -> String {
        format!("RWD_{}", self.name.to_uppercase().replace('.', "_"))
    }

    /// Reads a value of a file.
    pub(crate) fn read(&self, value: &toml::Value) -> Result<Value, String> {
        match (self.kind, value) {
            (Kind::Bool, toml::Value::Boolean(value)) => Ok(Value::Bool(*value)),
            (Kind::Count | Kind::Bytes, toml::Value::Integer(value)) => {
                u64::try_from(*value).map(Value::Int).map_err(|_| "it is negative".to_owned())
            }
            (Kind::Bytes, toml::Value::String(text)) => bytes(text).map(Value::Int).ok_or_else(|| self.wanted()),
            (Kind::Choice(choices), toml::Value::String(text)) if choices.contains(&text.as_str()) => {
                Ok(Value::Text(text.clone()))
            }
            (Kind::List, toml::Value::Array(list)) => {
                let texts = list.iter().map(|item| item.as_str().map(str::to_owned));
                texts.collect::<Option<Vec<_>>>().map(Value::List).ok_or_else(|| self.wanted())
            }
            _ => Err(self.wanted()),
        }
    }

    /// Reads a value of a variable or of the command line: TOML, or plain text, or texts with commas between.
    pub(crate) fn read_text(&self, text: &str) -> Result<Value, String> {
        let parsed = toml::from_str::<toml::Table>(&format!("value = {text}"));
        if let Some(value) = parsed.ok().filter(|table| table.len() == 1).and_then(|mut table| table.remove("value")) {
            return self.read(&value);
        }
        match self.kind {
            Kind::List => Ok(Value::List(
                text.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect(),
            )),
            _ => self.read(&toml::Value::String(text.to_owned())),
        }
    }

    fn wanted(&self) -> String {
        match self.kind {
            Kind::Bool => "it must be true or false".to_owned(),
            Kind::Count => "it must be a number".to_owned(),
            Kind::Bytes => "it must be a number of bytes, as 2097152 or \"2 MiB\"".to_owned(),
            Kind::Choice(choices) => format!("it must be one of {}", choices.join(", ")),
            Kind::List => "it must be a list of texts".to_owned(),
        }
    }
}

/// `2 MiB`, `512KiB`, `1 GiB`, `100`.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale: u64 = match unit.trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}
