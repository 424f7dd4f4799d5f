//! The one grammar of addresses (design § 6, contract 002-03).

use crate::{Seq, Step, Turn};

/// An address as typed, not yet looked up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// `SESSION/` in front of it: `harness:id` or a prefix of an id.
    pub session: Option<String>,
    /// The rest.
    pub form: Form,
}

/// One form of an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// `t7`, `turn 7`: the end of a turn.
    TurnEnd(Turn),
    /// `t7^`: just before a turn.
    TurnStart(Turn),
    /// `t7.3`: at or before the end of a step of a turn.
    TurnStep(Turn, Step),
    /// `step:3`, `step 3`: the latest step of that number (002-05).
    Step(Step),
    /// `seq:87`: at or before a position.
    Seq(Seq),
    /// `latest`, `last`, `latest~2`.
    Latest(u32),
    /// Lower-case hexadecimal digits, at least four.
    Id(String),
    /// A label.
    Name(String),
    /// `@10m`: so many milliseconds ago.
    Ago(i64),
    /// `@14:05`, `@2026-11-30T14:05`: a local time, read by the [`Clock`](crate::Clock)'s owner.
    Time(String),
    /// `@`: now.
    Now,
}

/// Why a text is no address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{given:?} is no target: {why}")]
pub struct AddressError {
    /// As typed.
    pub given: String,
    /// The rule.
    pub why: &'static str,
}

impl Address {
    /// Reads an address. Keywords and hexadecimal digits in either case.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let trimmed = text.trim();
        let (session, rest) = match trimmed.split_once('/') {
            Some((session, rest)) => (Some(session), rest),
            None => (None, trimmed),
        };
        let bad = |why| AddressError { given: text.to_owned(), why };
        if session.is_some_and(|s| s.is_empty() || s.contains(char::is_whitespace)) {
            return Err(bad("the session before `/` is missing or holds a blank"));
        }
        let form = Form::parse(rest).map_err(bad)?;
        Ok(Self { session: session.map(str::to_owned), form })
    }
}

impl Form {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let lower = text.to_lowercase();
        if let Some(time) = lower.strip_prefix('@') {
            return Self::parse_time(time, text.get(1..).unwrap_or_default());
        }
        if let Some(number) = keyword(&lower, "step") {
            return match number.parse() {
                Ok(n) if n >= 1 => Ok(Self::Step(Step(n))),
                _ => Err("`step` takes a number from 1 on"),
            };
        }
        if let Some(number) = keyword(&lower, "turn") {
            return number.parse().map(|n| Self::TurnEnd(Turn(n))).map_err(|_| "`turn` takes a number");
        }
        if let Some(number) = lower.strip_prefix("seq:") {
            return number.parse().map(|n| Self::Seq(Seq(n))).map_err(|_| "`seq:` takes a number");
        }
        for word in ["latest", "last"] {
            match lower.strip_prefix(word) {
                Some("") => return Ok(Self::Latest(0)),
                Some(rest) if rest.starts_with('~') => {
                    return rest.trim_start_matches('~').parse().map(Self::Latest).map_err(|_| "`~` takes a number");
                }
                _ => {}
            }
        }
        if let Some(form) = Self::parse_turn(&lower)? {
            return Ok(form);
        }
        if lower.len() >= 4 && lower.len() <= 32 && lower.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Ok(Self::Id(lower));
        }
        check_label(text)?;
        Ok(Self::Name(text.to_owned()))
    }

    /// `t7`, `t7^`, `t7.3`; `None` for what does not begin with `t` and a digit.
    fn parse_turn(lower: &str) -> Result<Option<Self>, &'static str> {
        let Some(rest) = lower.strip_prefix('t').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) else {
            return Ok(None);
        };
        let why = "a turn is `t7`, `t7^` or `t7.3`";
        let turn = |digits: &str| digits.parse().map(Turn).map_err(|_| why);
        if let Some(digits) = rest.strip_suffix('^') {
            return Ok(Some(Self::TurnStart(turn(digits)?)));
        }
        match rest.split_once('.') {
            Some((digits, step)) => Ok(Some(Self::TurnStep(turn(digits)?, Step(step.parse().map_err(|_| why)?)))),
            None => Ok(Some(Self::TurnEnd(turn(rest)?))),
        }
    }

    fn parse_time(lower: &str, as_typed: &str) -> Result<Self, &'static str> {
        if lower.is_empty() {
            return Ok(Self::Now);
        }
        let unit = match lower.chars().last() {
            Some('s') => 1000,
            Some('m') => 60_000,
            Some('h') => 3_600_000,
            Some('d') => 86_400_000,
            _ => 0,
        };
        let digits = lower.strip_suffix(|c: char| c.is_ascii_alphabetic()).unwrap_or(lower);
        if unit > 0 && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            let count: i64 = digits.parse().map_err(|_| "too long ago")?;
            return count.checked_mul(unit).map(Self::Ago).ok_or("too long ago");
        }
        if digits.contains(':') || digits.contains('-') {
            return Ok(Self::Time(as_typed.to_owned()));
        }
        Err("`@` takes a time, as `@14:05`, `@10m` or `@2026-11-30T14:05`")
    }
}

/// The number after `word:` or `word `; `None` when the text is something else.
fn keyword<'a>(lower: &'a str, word: &str) -> Option<&'a str> {
    let rest = lower.strip_prefix(word)?;
    if rest.is_empty() {
        return Some("");
    }
    rest.starts_with([':', ' ', '\t']).then(|| rest.trim_start_matches(':').trim())
}

/// Is `label` fit to be a name? It may not look like any other address (design § 6, K-42).
pub fn check_name(label: &str) -> Result<(), &'static str> {
    check_label(label)?;
    match Form::parse(label) {
        Ok(Form::Name(_)) => Ok(()),
        _ => Err("it reads as a position or an id"),
    }
}

fn check_label(label: &str) -> Result<(), &'static str> {
    if label.is_empty() {
        Err("it is empty")
    } else if label.chars().count() > 100 {
        Err("it has more than 100 characters")
    } else if label
        .chars()
        .any(|c| c.is_control() || c.is_whitespace() || matches!(c, '/' | '|' | '~' | '^' | '@' | '*' | '?' | '['))
    {
        Err("it holds a blank, a control character or one of /|~^@*?[")
    } else if label.starts_with(['-', '.']) {
        Err("it begins with `-` or `.`")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> Form {
        Address::parse(text).unwrap().form
    }

    /// Design § 6.
    #[test]
    fn ta03_ta10_ta15_every_form() {
        assert_eq!(form("t7"), Form::TurnEnd(Turn(7)));
        assert_eq!(form("turn 7"), Form::TurnEnd(Turn(7)));
        assert_eq!(form("TURN  7"), Form::TurnEnd(Turn(7)));
        assert_eq!(form("T7^"), Form::TurnStart(Turn(7)));
        assert_eq!(form("t7.3"), Form::TurnStep(Turn(7), Step(3)));
        assert_eq!(form("step:3"), Form::Step(Step(3)));
        assert_eq!(form("Step 3"), Form::Step(Step(3)));
        assert_eq!(form("seq:87"), Form::Seq(Seq(87)));
        assert_eq!(form("latest"), Form::Latest(0));
        assert_eq!(form("last~2"), Form::Latest(2));
        assert_eq!(form("BEEF"), Form::Id("beef".into()));
        assert_eq!(form("abc"), Form::Name("abc".into()));
        assert_eq!(form("before-refactor"), Form::Name("before-refactor".into()));
        assert_eq!(form("@"), Form::Now);
        assert_eq!(form("@10m"), Form::Ago(600_000));
        assert_eq!(form("@14:05"), Form::Time("14:05".into()));
        assert_eq!(form("@2026-11-30T14:05"), Form::Time("2026-11-30T14:05".into()));
        assert_eq!(
            Address::parse("dsh:abc/t7^").unwrap(),
            Address { session: Some("dsh:abc".into()), form: Form::TurnStart(Turn(7)) }
        );
    }

    /// Usage errors, not unknown ids.
    #[test]
    fn ta03_ta18_ta22_malformed_targets_say_why() {
        for bad in [
            "",
            "step",
            "step 0",
            "step abc",
            "turn",
            "turn x",
            "seq:",
            "t7.x",
            "t7^^",
            "latest~x",
            "@x",
            "@99999999999999999d",
            "/t7",
            "a b",
            "-x",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad:?} was read as {:?}", Address::parse(bad));
        }
    }

    /// K-42: a name can be neither another address nor a forged line.
    #[test]
    fn names_look_like_nothing_else() {
        for bad in ["t7", "latest", "beef", "step", "a/b", "a | session=x", "a\nb", "", "@x", "-x"] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        for good in ["v1", "before-refactor", "naïve", "total", "task"] {
            assert!(check_name(good).is_ok(), "{good:?}");
        }
    }
}
