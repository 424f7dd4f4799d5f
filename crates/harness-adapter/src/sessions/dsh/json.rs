//! Small readings of raw JSON, by the rules of JavaScript: a number is an integer if its value is one.

use checkpoint_core::JsonText;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The largest integer that JavaScript counts to safely.
pub(super) const MAX_SAFE: i64 = (1 << 53) - 1;

/// For optional fields: a `null` is there, a missing field is not.
pub(super) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// A safe integer, however it is spelt.
pub(super) fn integer(raw: &RawValue) -> Option<i64> {
    let text = raw.get();
    if let Ok(value) = text.parse::<i64>() {
        return (value.abs() <= MAX_SAFE).then_some(value);
    }
    if !text.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "safe integers are exact")]
    (value.fract() == 0.0 && value.abs() <= MAX_SAFE as f64).then_some(value as i64)
}

/// A safe integer from 0 on that is not `-0`.
pub(super) fn natural(raw: &RawValue) -> Option<u64> {
    if raw.get().starts_with('-') { None } else { integer(raw).and_then(|value| u64::try_from(value).ok()) }
}

pub(super) fn is_string(raw: &RawValue) -> bool {
    raw.get().starts_with('"')
}

pub(super) fn is_full_string(raw: &RawValue) -> bool {
    is_string(raw) && raw.get().len() > 2
}

/// True for exactly this string. `plain` needs no escapes in JSON.
pub(super) fn is_text(raw: &RawValue, plain: &str) -> bool {
    let text = raw.get();
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match inner {
        Some(inner) if !inner.contains('\\') => inner == plain,
        Some(_) => JsonText::from_json(text).is_some_and(|text| text == *plain),
        None => false,
    }
}

/// The string that a value is.
pub(super) fn text(raw: &RawValue) -> Option<JsonText> {
    JsonText::from_json(raw.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn integers_are_those_of_javascript() {
        for (text, value) in [("7", Some(7)), ("-7", Some(-7)), ("7.0", Some(7)), ("1e3", Some(1000)), ("7.5", None)] {
            assert_eq!(integer(&raw(text)), value, "{text}");
        }
        for bad in ["9007199254740992", "1e300", "\"7\"", "null", "[7]", "1e400"] {
            assert_eq!(integer(&raw(bad)), None, "{bad}");
        }
        assert_eq!(natural(&raw("-0")), None);
        assert_eq!(natural(&raw("9007199254740991")), Some(9_007_199_254_740_991));
    }

    #[test]
    fn strings_are_compared_by_value() {
        assert!(is_text(&raw(r#""ab""#), "ab") && is_text(&raw(r#""\u0061b""#), "ab"));
        assert!(!is_text(&raw("5"), "5") && !is_full_string(&raw(r#""""#)));
    }
}
