//! A string of JavaScript, as harnesses keep them: UTF-16 code units, surrogates not always in pairs.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;

/// A JSON string as code units, so that one with a lone surrogate is neither refused nor changed.
///
/// Models stream text in pieces, and a piece may end in the middle of a surrogate pair: such strings do occur.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct JsonText(Box<[u16]>);

impl JsonText {
    /// Reads a JSON string, quotes included. `None` for any other text.
    pub fn from_json(json: &str) -> Option<Self> {
        let inner = json.trim_matches([' ', '\t', '\n', '\r']).strip_prefix('"')?.strip_suffix('"')?;
        let mut units = Vec::with_capacity(inner.len());
        let mut chars = inner.chars();
        while let Some(c) = chars.next() {
            let unit = match c {
                '\\' => match chars.next()? {
                    c @ ('"' | '\\' | '/') => u16::try_from(u32::from(c)).ok()?,
                    'b' => 8,
                    't' => 9,
                    'n' => 10,
                    'f' => 12,
                    'r' => 13,
                    'u' => {
                        let mut unit = 0;
                        for _ in 0..4 {
                            unit = unit << 4 | u16::try_from(chars.next()?.to_digit(16)?).ok()?;
                        }
                        unit
                    }
                    _ => return None,
                },
                '"' | '\0'..='\u{1f}' => return None,
                c => {
                    units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
                    continue;
                }
            };
            units.push(unit);
        }
        Some(Self(units.into()))
    }

    /// The code units.
    pub fn units(&self) -> &[u16] {
        &self.0
    }

    /// True for the empty string.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text, unless a surrogate is alone.
    pub fn to_text(&self) -> Option<String> {
        String::from_utf16(&self.0).ok()
    }

    /// The text as JSON, quotes included, the way `JSON.stringify` writes it.
    pub fn to_json(&self) -> String {
        let mut json = String::from("\"");
        self.write_escaped(&mut json);
        json.push('"');
        json
    }

    /// The same without the quotes, to become a part of a longer string.
    pub fn write_escaped(&self, json: &mut String) {
        for c in char::decode_utf16(self.0.iter().copied()) {
            match c {
                Ok('"') => json.push_str("\\\""),
                Ok('\\') => json.push_str("\\\\"),
                Ok('\u{8}') => json.push_str("\\b"),
                Ok('\t') => json.push_str("\\t"),
                Ok('\n') => json.push_str("\\n"),
                Ok('\u{c}') => json.push_str("\\f"),
                Ok('\r') => json.push_str("\\r"),
                Ok(c @ '\0'..='\u{1f}') => escape(json, u32::from(c)),
                Ok(c) => json.push(c),
                Err(lone) => escape(json, u32::from(lone.unpaired_surrogate())),
            }
        }
    }
}

fn escape(json: &mut String, unit: u32) {
    // Writing to a text cannot fail.
    let _ = write!(json, "\\u{unit:04x}");
}

impl From<&str> for JsonText {
    fn from(text: &str) -> Self {
        Self(text.encode_utf16().collect())
    }
}

impl PartialEq<str> for JsonText {
    fn eq(&self, other: &str) -> bool {
        self.0.iter().copied().eq(other.encode_utf16())
    }
}

/// For people: a lone surrogate is shown as U+FFFD.
impl fmt::Display for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf16_lossy(&self.0))
    }
}

/// Only from a text in memory: the string is taken from it as it stands.
impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Self::from_json(raw.get()).ok_or_else(|| D::Error::custom("not a string"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_survive_with_lone_surrogates() {
        for json in [r#""""#, r#""a\"\\\n\u0001ü""#, r#""\ud800x""#, r#""\udc00\ud800""#, "\"\u{1f600}\""] {
            let text = JsonText::from_json(json).unwrap();
            assert_eq!(text.to_json(), json);
            assert_eq!(serde_json::from_str::<JsonText>(json).unwrap(), text);
        }
        assert_eq!(JsonText::from_json(r#""\ud83d\ude00""#).unwrap().to_json(), "\"\u{1f600}\"");
        assert_eq!(JsonText::from_json(r#""\ud800""#).unwrap().to_text(), None);
        let plain = JsonText::from("a/b");
        assert!(plain == *"a/b" && plain != *"a");
    }

    #[test]
    fn what_is_no_string_is_refused() {
        for bad in ["", "\"", "5", "null", "\"a", r#""\x""#, r#""\u12"#, r#""\u12g4""#, r#""a"b""#, "\"\n\"", r#""\""#]
        {
            assert_eq!(JsonText::from_json(bad), None, "{bad}");
        }
    }
}
