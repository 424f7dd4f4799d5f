//! What agents run before every tool is parsed by the part of the definition that it needs. Building all of it, some forty
//! verbs with their help, takes longer than anything else that such a run does before it looks at the workspace.

use std::ffi::OsString;

use clap::{ArgMatches, Args, Command, FromArgMatches as _};

use super::{Cli, Global, HookArgs, SaveArgs, Verb};

/// A verb that is parsed so: its name, its part of the definition, and how it is read.
type Frequent = (&'static str, fn(Command) -> Command, fn(&ArgMatches) -> Result<Verb, clap::Error>);

const FREQUENT: [Frequent; 2] = [
    ("hook", HookArgs::augment_args, |found| HookArgs::from_arg_matches(found).map(Verb::Hook)),
    ("save", SaveArgs::augment_args, |found| SaveArgs::from_arg_matches(found).map(Verb::Save)),
];

/// The command line, if it is one of a frequent verb without a mistake. All others, and every wish for help, are for the
/// whole definition: it says the same of these, and knows what to say of those.
pub(crate) fn frequent(args: &[OsString]) -> Option<Cli> {
    let (name, augment, read) =
        args.iter().skip(1).find_map(|word| FREQUENT.iter().find(|(name, ..)| *word == **name))?;
    let command = Global::augment_args(Command::new("rwd").disable_help_subcommand(true));
    let found = command.subcommand(augment(Command::new(*name))).try_get_matches_from(args).ok()?;
    let (_, of_verb) = found.subcommand()?;
    Some(Cli { global: Global::from_arg_matches(&found).ok()?, verb: Some(read(of_verb).ok()?) })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn line(words: &str) -> Vec<OsString> {
        std::iter::once("rwd").chain(words.split_whitespace()).map(Into::into).collect()
    }

    /// What it takes is what the whole definition says.
    #[test]
    fn it_says_what_the_whole_definition_says() {
        for words in [
            "save",
            "hook claude",
            "hook",
            "hook claude --json -C x save",
            "-C save hook codex",
            "--json save -m note --name n --turn 3 --step 4 --kind auto --trigger t",
            "save -qvv --data-dir d --index json --session dsh:x --color never -y --no-input --force -C dir",
            "--session save save",
            "save --json -m hook",
        ] {
            let (quick, whole) = (frequent(&line(words)), Cli::try_parse_from(line(words)).unwrap());
            if let Some(quick) = quick {
                assert_eq!(format!("{quick:?}"), format!("{whole:?}"), "{words}");
            } else {
                assert_eq!(words, "-C save hook codex", "{words} is frequent");
            }
        }
    }

    #[test]
    fn mistakes_help_and_other_verbs_are_not_for_it() {
        for words in [
            "",
            "--version",
            "save --help",
            "save extra",
            "save --turn x",
            "sav",
            "name save",
            "log hook",
            "-C save",
            "save save",
            "to hook",
            "help save",
            "save --kind never",
            "--nope save",
            "demo",
        ] {
            assert!(frequent(&line(words)).is_none(), "{words}");
        }
    }
}
