//! The tools: which verb each is, and how its arguments become flags.

use std::ffi::OsString;

use harness_adapter::mcp::Tool;
use serde_json::{Map, Value, json};

/// Where an argument goes.
enum Put {
    /// A word of its own.
    Word,
    /// A flag that is there or not.
    Flag(&'static str),
    /// A flag with text: `--flag=text`.
    Text(&'static str),
    /// A flag with a number from 1.
    Count(&'static str),
    /// One of some words, each of them a flag or nothing.
    Choice(&'static [(&'static str, Option<&'static str>)]),
    /// Literal paths, after everything else.
    Paths,
    /// The session that targets mean.
    Session,
}

struct Arg {
    name: &'static str,
    about: &'static str,
    needed: bool,
    put: Put,
}

const fn arg(name: &'static str, put: Put, about: &'static str) -> Arg {
    Arg { name, about, needed: false, put }
}

const fn needed(name: &'static str, put: Put, about: &'static str) -> Arg {
    Arg { name, about, needed: true, put }
}

/// A tool.
pub(super) struct Tooled {
    pub(super) name: &'static str,
    title: &'static str,
    about: &'static str,
    verb: &'static str,
    /// The schema of its answer.
    answer: &'static str,
    args: &'static [&'static [Arg]],
    reads_only: bool,
    destroys: bool,
    repeatable: bool,
}

const SESSION: &[Arg] = &[arg(
    "session",
    Put::Session,
    "The conversation that targets mean, as HARNESS:ID. Default: the one at work here.",
)];

const TARGET: &[Arg] = &[needed(
    "target",
    Put::Word,
    "The point: an id or its beginning, a name, t7 (end of turn 7), t7^ (just before it), latest, latest~2, @10m.",
)];

const WHAT: &[Arg] = &[
    arg(
        "scope",
        Put::Choice(&[
            ("default", None),
            ("files", Some("--files")),
            ("chat", Some("--chat")),
            ("both", Some("--both")),
        ]),
        "Which half goes back: files, the conversation, both or nothing, or (default) both where that is possible.",
    ),
    arg("exact", Put::Flag("--exact"), "Also remove files that the point did not have."),
];

const HOW: &[Arg] = &[
    arg(
        "drift",
        Put::Choice(&[("ask", None), ("keep", Some("--keep-drift")), ("overwrite", Some("--overwrite-drift"))]),
        "What happens to paths that a person changed since: with `ask` (default) nothing at all is restored where there \
         are any.",
    ),
    arg("withOthers", Put::Flag("--with-others"), "Also restore what other sessions changed since."),
    arg("skipBlocked", Put::Flag("--skip-blocked"), "Go on without paths that cannot be restored."),
    arg("paths", Put::Paths, "Only these paths and what lies below them: literal, relative to the workspace."),
    arg("plan", Put::Text("--plan"), "The plan of a preview: nothing is done if it has changed since."),
];

const LIST: &[Arg] = &[
    arg("limit", Put::Count("-n"), "At most so many points, the newest."),
    arg("all", Put::Flag("--all"), "Also guards and gaps, and no limit."),
    arg("named", Put::Flag("--named"), "Only points with a name."),
    arg("operations", Put::Flag("--ops"), "Restores and undos instead of points."),
];

const DIFF: &[Arg] = &[
    arg("from", Put::Word, "From this point. Default: the start of the last turn."),
    arg("to", Put::Word, "To this point; only with `from`. Default: now."),
    arg(
        "form",
        Put::Choice(&[("stat", Some("--stat")), ("names", Some("--name-only")), ("patch", Some("--patch"))]),
        "How much is said: counted lines, only names, or the changes themselves.",
    ),
    arg("paths", Put::Paths, "Only these paths and what lies below them: literal, relative to the workspace."),
];

pub(super) const TOOLS: &[Tooled] = &[
    Tooled {
        name: "list",
        title: "List points",
        about: "Lists the points of this workspace that files can be taken back to, the newest first.",
        verb: "log",
        answer: "rwd.log/1",
        args: &[LIST, SESSION],
        reads_only: true,
        destroys: false,
        repeatable: true,
    },
    Tooled {
        name: "diff",
        title: "Compare with a point",
        about: "Shows what differs between a point and now, or between two points.",
        verb: "diff",
        answer: "rwd.diff/1",
        args: &[DIFF, SESSION],
        reads_only: true,
        destroys: false,
        repeatable: true,
    },
    Tooled {
        name: "preview",
        title: "Preview a restore",
        about: "Says path by path what `restore` would do with the same arguments, and changes nothing. Its `plan` can \
                be given to `restore`.",
        verb: "preview",
        answer: "rwd.preview/1",
        args: &[TARGET, WHAT, HOW, SESSION],
        reads_only: true,
        destroys: false,
        repeatable: true,
    },
    Tooled {
        name: "restore",
        title: "Restore a point",
        about: "Takes the workspace back to a point. The person is asked first and sees the plan; `undo` takes it back.",
        verb: "to",
        answer: "rwd.to/1",
        args: &[TARGET, WHAT, HOW, SESSION],
        reads_only: false,
        destroys: true,
        repeatable: true,
    },
    Tooled {
        name: "undo",
        title: "Undo a restore",
        about: "Takes the last restore back, or the one named. The person is asked first.",
        verb: "undo",
        answer: "rwd.to/1",
        args: &[&[arg("operation", Put::Word, "The operation. Default: the last.")], HOW, SESSION],
        reads_only: false,
        destroys: true,
        repeatable: false,
    },
    Tooled {
        name: "save",
        title: "Make a point",
        about: "Makes a point of the workspace as it is now.",
        verb: "save",
        answer: "rwd.save/1",
        args: &[
            &[
                arg("note", Put::Text("-m"), "A note for people."),
                arg("name", Put::Text("--name"), "Pins the point with this name."),
            ],
            SESSION,
        ],
        reads_only: false,
        destroys: false,
        repeatable: false,
    },
    Tooled {
        name: "name",
        title: "Name a point",
        about: "Pins a point with a name, so that it is kept and can be told apart.",
        verb: "name",
        answer: "rwd.name/1",
        args: &[TARGET, &[needed("label", Put::Word, "The name.")], SESSION],
        reads_only: false,
        destroys: false,
        repeatable: true,
    },
    Tooled {
        name: "mark",
        title: "Mark an exploration",
        about: "Marks where an exploration begins in the conversation, so that a person can fold what follows into a \
                report. Needs a conversation whose log rwd can read.",
        verb: "mark",
        answer: "rwd.mark/1",
        args: &[&[arg("objective", Put::Word, "What the exploration is for.")], SESSION],
        reads_only: false,
        destroys: false,
        repeatable: false,
    },
];

impl Tooled {
    fn args(&self) -> impl Iterator<Item = &'static Arg> {
        self.args.iter().copied().flatten()
    }

    /// As `tools/list` tells it. Schemas keep to one type a field: some models' interfaces take no more.
    pub(super) fn listed(&self) -> Tool {
        let mut properties = Map::new();
        for arg in self.args() {
            let mut schema = match &arg.put {
                Put::Word | Put::Text(_) | Put::Session => json!({"type": "string"}),
                Put::Flag(_) => json!({"type": "boolean"}),
                Put::Count(_) => json!({"type": "integer", "minimum": 1}),
                Put::Paths => json!({"type": "array", "items": {"type": "string"}}),
                Put::Choice(words) => {
                    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                    json!({"type": "string", "enum": words})
                }
            };
            if let Some(fields) = schema.as_object_mut() {
                fields.insert("description".into(), arg.about.into());
            }
            properties.insert(arg.name.to_owned(), schema);
        }
        let required: Vec<&str> = self.args().filter(|arg| arg.needed).map(|arg| arg.name).collect();
        let input = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        });
        let found = crate::wire::schemas().into_iter().find(|(name, _)| name == self.answer);
        Tool {
            name: self.name,
            title: self.title,
            about: self.about,
            input,
            output: found.map(|(_, schema)| schema).unwrap_or_default(),
            reads_only: self.reads_only,
            destroys: self.destroys,
            repeatable: self.repeatable,
        }
    }

    /// The verb with its flags, and the session; or what is wrong with the arguments. Text of a model never becomes a
    /// flag: it stands behind `=`, behind `--`, or does not begin with `-`.
    pub(super) fn argv(&self, given: &Map<String, Value>) -> Result<(Vec<OsString>, Option<String>), String> {
        if let Some(unknown) = given.keys().find(|name| !self.args().any(|arg| arg.name == name.as_str())) {
            let known: Vec<&str> = self.args().map(|arg| arg.name).collect();
            return Err(format!("{} has no argument {unknown}; it has {}", self.name, known.join(", ")));
        }
        let mut argv: Vec<OsString> = vec![self.verb.into()];
        let (mut paths, mut session, mut gap) = (Vec::new(), None, None);
        for arg in self.args() {
            let name = arg.name;
            let Some(value) = given.get(name).filter(|value| !value.is_null()) else {
                if arg.needed {
                    return Err(format!("{} needs {name}", self.name));
                }
                if matches!(arg.put, Put::Word) {
                    gap = Some(name);
                }
                continue;
            };
            let text = || {
                let text = value.as_str().ok_or_else(|| format!("{name} must be a string"))?;
                if text.contains('\0') { Err(format!("{name} holds a NUL character")) } else { Ok(text) }
            };
            match &arg.put {
                Put::Word => {
                    let text = text()?;
                    if text.starts_with('-') {
                        return Err(format!("{name} must not begin with -"));
                    }
                    if let Some(gap) = gap {
                        return Err(format!("{name} needs {gap}"));
                    }
                    argv.push(text.into());
                }
                Put::Flag(flag) => match value.as_bool() {
                    Some(true) => argv.push(flag.into()),
                    Some(false) => {}
                    None => return Err(format!("{name} must be true or false")),
                },
                Put::Text(flag) => argv.push(format!("{flag}={}", text()?).into()),
                Put::Count(flag) => {
                    let count = value.as_u64().filter(|count| (1..=u64::from(u32::MAX)).contains(count));
                    let count = count.ok_or_else(|| format!("{name} must be a whole number from 1"))?;
                    argv.push(format!("{flag}={count}").into());
                }
                Put::Choice(words) => {
                    let text = text()?;
                    let Some((_, flag)) = words.iter().find(|(word, _)| *word == text) else {
                        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                        return Err(format!("{name} must be one of {}", words.join(", ")));
                    };
                    argv.extend(flag.map(OsString::from));
                }
                Put::Paths => {
                    let list = value.as_array().ok_or_else(|| format!("{name} must be a list of strings"))?;
                    for path in list {
                        let path = path.as_str().filter(|path| !path.contains('\0'));
                        paths.push(OsString::from(path.ok_or_else(|| format!("{name} must be a list of strings"))?));
                    }
                    // Nothing chosen is not everything chosen.
                    if paths.is_empty() {
                        return Err(format!("{name} is empty; leave it out for all"));
                    }
                }
                Put::Session => session = Some(text()?.to_owned()),
            }
        }
        if !paths.is_empty() {
            argv.push("--".into());
            argv.append(&mut paths);
        }
        Ok((argv, session))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use proptest::prelude::*;

    use super::*;
    use crate::args::Cli;

    fn named(name: &str) -> &'static Tooled {
        TOOLS.iter().find(|tool| tool.name == name).unwrap()
    }

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(fields) => fields,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn arguments_become_flags() {
        let given =
            json!({"target": "t1^", "scope": "files", "drift": "keep", "exact": true, "plan": "-y", "paths": ["-x"]});
        let (argv, session) = named("restore").argv(&object(given)).unwrap();
        assert_eq!(
            argv,
            ["to", "t1^", "--files", "--exact", "--keep-drift", "--plan=-y", "--", "-x"].map(OsString::from)
        );
        assert_eq!(session, None);
    }

    #[test]
    fn wrong_arguments_are_told() {
        for (tool, given) in [
            ("restore", json!({})),
            ("restore", json!({"target": "--yes"})),
            ("restore", json!({"target": 7})),
            ("restore", json!({"target": "a\u{0}b"})),
            ("restore", json!({"target": "t1", "force": true})),
            ("restore", json!({"target": "t1", "scope": "all"})),
            ("restore", json!({"target": "t1", "paths": []})),
            ("restore", json!({"target": "t1", "paths": "a"})),
            ("restore", json!({"target": "t1", "exact": "yes"})),
            ("list", json!({"limit": 0})),
            ("list", json!({"limit": -1})),
            ("diff", json!({"to": "t1"})),
        ] {
            assert!(named(tool).argv(&object(given.clone())).is_err(), "{tool} {given}");
        }
    }

    proptest! {
        /// No text makes a flag of its own: whatever a model says, it neither confirms nor forces.
        #[test]
        fn no_text_becomes_a_flag(text in "(--(yes|force|json|plan=x|overwrite-drift)|-y|-fy|--|=|[ -~]{0,8})") {
            for tool in TOOLS {
                let mut given = Map::new();
                for arg in tool.args() {
                    match arg.put {
                        Put::Word | Put::Text(_) => drop(given.insert(arg.name.into(), text.clone().into())),
                        Put::Paths => drop(given.insert(arg.name.into(), json!([text]))),
                        _ => {}
                    }
                }
                let Ok((argv, _)) = tool.argv(&given) else { continue };
                if let Ok(cli) = Cli::try_parse_from(std::iter::once(OsString::from("rwd")).chain(argv)) {
                    prop_assert!(!cli.global.yes && !cli.global.force && !cli.global.json);
                }
            }
        }
    }
}
