//! A JSON object whose members keep their order and their bytes.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::lines::{given, text};

/// The members of an object, as they stand there.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                    members.push((name, value));
                }
                Ok(Fields(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl<'a> Fields<'a> {
    /// The object that a text is; `None` when it is something else.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// A member that is there and not `null`. Of several of one name the last counts, as for the clients.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        given(self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| *value))
    }

    /// A member that is a text.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        text(self.get(name))
    }

    /// A member that is an object.
    pub(super) fn object(&self, name: &str) -> Option<Self> {
        Self::of(self.get(name)?)
    }

    /// The object that a value is.
    pub(super) fn of(value: &'a RawValue) -> Option<Self> {
        serde_json::from_str(value.get()).ok()
    }

    /// The names of its members.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// True where a member is `true`.
    pub(super) fn is(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }

    /// The object with some members replaced; those that it does not have come at its end, but for those that `only`
    /// replaces.
    pub(super) fn with(&self, changed: &[(&str, String)], only_known: &[&str]) -> String {
        let mut out = String::from("{");
        let mut member = |name: &str, value: &str| {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&quoted(name));
            out.push(':');
            out.push_str(value);
        };
        for (name, value) in &self.0 {
            match changed.iter().find(|(known, _)| known == name) {
                Some((name, value)) => member(name, value),
                None => member(name, value.get()),
            }
        }
        for (name, value) in changed {
            if !only_known.contains(name) && !self.0.iter().any(|(known, _)| known == name) {
                member(name, value);
            }
        }
        out.push('}');
        out
    }

    /// The object without a member.
    pub(super) fn without(mut self, name: &str) -> Self {
        self.0.retain(|(known, _)| known != name);
        self
    }
}

/// A list of values.
pub(super) fn list(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// A text as JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_order_and_bytes() {
        let row = br#"{"b": 1.50, "a\u0041":"x" ,"id":"old","n":null}"#;
        let fields = Fields::parse(row).unwrap();
        assert_eq!(fields.text("aA").as_deref(), Some("x"));
        assert!(fields.get("n").is_none());
        let changed = [("id", quoted("new")), ("more", "1".to_owned()), ("not", "2".to_owned())];
        assert_eq!(fields.with(&changed, &["not"]), r#"{"b":1.50,"aA":"x","id":"new","n":null,"more":1}"#);
        assert_eq!(fields.without("b").with(&[], &[]), r#"{"aA":"x","id":"old","n":null}"#);
    }

    #[test]
    fn what_is_no_object_has_no_members() {
        for text in ["", "[]", "7", "\"x\"", "{\"a\":}", "{\"a\":1}x", "\u{0}"] {
            assert!(Fields::parse(text.as_bytes()).is_none(), "{text:?}");
        }
        assert!(Fields::parse(b"{\"a\":\"\xff\"}").is_none());
    }
}
