//! What somebody who does not know the verbs may have meant.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Typed;

/// Commands for a word that is no verb here though other tools have it, and for an argument that is missing; one hint
/// each.
pub(crate) fn guesses(error: &clap::Error, typed: &Typed) -> Vec<String> {
    match (error.kind(), error.get(ContextKind::InvalidSubcommand), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word)), _) => of_word(word, typed),
        (ErrorKind::MissingRequiredArgument, _, Some(ContextValue::Strings(missing))) => {
            missing.iter().filter_map(|name| of_argument(name, typed)).collect()
        }
        _ => Vec::new(),
    }
}

fn of_word(word: &str, typed: &Typed) -> Vec<String> {
    let one = |what: &str, words: &[&str], rest: &str| vec![format!("to {what}: {}{rest}", typed.other(words))];
    match word {
        "list" | "ls" | "history" | "timeline" | "points" | "turns" => one("see the timeline", &["log"], ""),
        "rewind" | "rollback" | "revert" | "reset" | "checkout" | "goto" => {
            let mut hints = one("take the last turn back", &["back"], "");
            hints.extend(one("go to another point", &["to"], " T"));
            hints
        }
        "checkpoint" | "snapshot" | "commit" | "point" => one("make a point", &["save"], ""),
        "delete" | "remove" | "rm" => one("remove a point", &["drop"], " T"),
        "forget" => one("take content out of every point", &["purge"], " PATH"),
        "install" | "setup" | "hooks" => one("set up the agents that are here", &["init"], ""),
        "continue" | "resume" => one("finish an interrupted operation", &["recover", "--finish"], ""),
        "version" => one("see the version", &["--version"], ""),
        _ => Vec::new(),
    }
}

fn of_argument(name: &str, typed: &Typed) -> Option<String> {
    match name.trim_end_matches('.') {
        "<T>" => Some(format!("T is a point, as t7, t7^ or an id; to see which there are: {}", typed.other(&["log"]))),
        "<ID>" => Some(format!("to see the sessions: {}", typed.other(&["session", "list"]))),
        "<SHELL>" => Some("SHELL is bash, elvish, fish, powershell or zsh".to_owned()),
        _ => None,
    }
}
