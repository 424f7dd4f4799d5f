//! Taking JSON text apart without reading what is inside: the parts are slices of it.
//!
//! A log of ten thousand points is mostly documents that nobody asks for. Here they are found, not parsed, and stay as
//! they were written to the last digit. Text that is no JSON may pass; a checksum has vouched for it before.

/// Members of an object, each with its key, still quoted, and its value. `None`: no object.
pub(crate) fn members(text: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut found = Vec::new();
    let mut rest = open(text, b'{')?;
    if let Some(after) = close(rest, b'}') {
        return end(after).then_some(found);
    }
    loop {
        let (key, after) = value(rest)?;
        let (value, after) = value(after.strip_prefix(b":")?)?;
        found.push((key, value));
        if let Some(after) = close(after, b'}') {
            return end(after).then_some(found);
        }
        rest = after.strip_prefix(b",")?;
    }
}

/// Elements of an array. `None`: no array.
pub(crate) fn elements(text: &[u8]) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    let mut rest = open(text, b'[')?;
    if let Some(after) = close(rest, b']') {
        return end(after).then_some(found);
    }
    loop {
        let (value, after) = value(rest)?;
        found.push(value);
        if let Some(after) = close(after, b']') {
            return end(after).then_some(found);
        }
        rest = after.strip_prefix(b",")?;
    }
}

fn open(text: &[u8], bracket: u8) -> Option<&[u8]> {
    close(text.trim_ascii_start(), bracket)
}

fn close(text: &[u8], bracket: u8) -> Option<&[u8]> {
    text.strip_prefix(&[bracket]).map(<[u8]>::trim_ascii_start)
}

fn end(text: &[u8]) -> bool {
    text.trim_ascii().is_empty()
}

/// One value, and what follows it and the blanks after it.
fn value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let length = match text.first()? {
        b'"' => string(text)?,
        b'{' | b'[' => nested(text)?,
        _ => text.iter().position(|b| b",:]} \t\r\n".contains(b)).unwrap_or(text.len()),
    };
    let (value, after) = text.split_at(length);
    (length > 0).then_some((value, after.trim_ascii_start()))
}

/// Length of the string that `text` begins with.
fn string(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Length of the object or array that `text` begins with.
fn nested(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => at += string(&text[at..])?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth -= 1;
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[\\\\\"{}\\[\\],: a\u{e9}\u{0}]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[\\\\\"{},: a]{0,4}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// What is taken apart here is what a parser finds.
        #[test]
        fn parts_are_those_of_a_parser(value in json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let parse = |part: &[u8]| serde_json::from_slice::<Value>(part).unwrap();
            let object = members(text.as_bytes()).map(|found| {
                found.into_iter().map(|(key, value)| (parse(key).as_str().unwrap().to_owned(), parse(value))).collect()
            });
            prop_assert_eq!(object.as_ref(), value.as_object());
            let array = elements(text.as_bytes()).map(|found| found.into_iter().map(parse).collect());
            prop_assert_eq!(array.as_ref(), value.as_array());
        }

        /// No bytes make it panic.
        #[test]
        fn anything_is_survived(text in prop::collection::vec(prop::sample::select(b"{}[]\",:\\a 1\n".to_vec()), 0..40)) {
            drop(members(&text));
            drop(elements(&text));
        }
    }
}
