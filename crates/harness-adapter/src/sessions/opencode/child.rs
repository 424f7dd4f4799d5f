//! A child's JSON, and its ids.
//!
//! opencode sorts by id: `msg_`, `prt_` and twelve digits of the time, then fourteen letters of no meaning. An id that any
//! session has already is not imported, in silence. So a child's ids keep the time and get letters of the child's own.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use super::{
    super::{
        door::DoorError,
        fields::{Fields, quoted},
    },
    export::{Export, MADE_BY},
};
use checkpoint_core::Timestamp;
use std::path::Path;

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The kind and the time of an id.
const HEAD: usize = 16;

/// A number in `width` letters, the most significant first; what does not fit is cut off in front.
pub(super) fn letters(mut number: u128, width: usize) -> String {
    let mut out = vec!['0'; width];
    for place in out.iter_mut().rev() {
        let at = usize::try_from(number % 62).unwrap_or(0);
        *place = LETTERS.get(at).map_or('0', |letter| char::from(*letter));
        number /= 62;
    }
    out.into_iter().collect()
}

/// A new session's id at a time: later ones sort before earlier ones, as the client's own do.
pub(super) fn session_id(at: Timestamp, random: u128) -> String {
    let time = !(u64::try_from(at.0).unwrap_or(0) << 12) & 0xffff_ffff_ffff;
    format!("ses_{time:012x}{}", letters(random, 14))
}

/// New ids for old ones, in the same order; the same whenever it is asked.
fn new_ids<'a>(
    child: &str,
    old: impl Iterator<Item = &'a str>,
    path: &Path,
) -> Result<BTreeMap<&'a str, String>, DoorError> {
    let mut sorted: Vec<&str> = old.collect();
    sorted.sort_unstable();
    let sum = Sha256::new_with_prefix(b"rwd opencode ids 1\n").chain_update(child).finalize();
    let own = sum.iter().take(8).fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    let mut new = BTreeMap::new();
    for (id, rank) in sorted.into_iter().zip(1_u128..) {
        let Some(head) = id.get(..HEAD).filter(|_| id.is_ascii()) else {
            let why = format!("the id {id:?} has another form than opencode's own");
            return Err(DoorError::Unsupported { path: path.to_owned(), line: 0, why });
        };
        new.insert(id, format!("{head}{}{}", letters(own, 8), letters(rank, 6)));
    }
    Ok(new)
}

/// What a child is made of.
#[derive(Debug)]
pub(super) struct Order<'a> {
    pub(super) parent: &'a str,
    pub(super) child: &'a str,
    /// So many messages are kept.
    pub(super) cut: usize,
    /// Keys of the turns that are kept.
    pub(super) keys: &'a [String],
    pub(super) now: Timestamp,
}

fn object(members: &[(&str, String)]) -> String {
    let members: Vec<String> = members.iter().map(|(name, value)| format!("{}:{value}", quoted(name))).collect();
    format!("{{{}}}", members.join(","))
}

fn array(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}

/// The child's JSON, and the ids of its messages and parts in order.
pub(super) fn compose(export: &Export<'_>, order: &Order<'_>, path: &Path) -> Result<(String, Vec<String>), DoorError> {
    let kept = export.messages.get(..order.cut).ok_or_else(|| DoorError::ReadBack { path: path.to_owned() })?;
    let part_ids: Vec<String> =
        kept.iter().flat_map(|m| &m.parts).filter_map(|part| Some(part.text("id")?.into_owned())).collect();
    let old = kept.iter().map(|message| &*message.id).chain(part_ids.iter().map(String::as_str));
    let new = new_ids(order.child, old, path)?;
    let mut made = Vec::new();
    let renamed = |fields: &Fields<'_>| -> String {
        let changed: Vec<(&str, String)> = fields
            .names()
            .filter(|name| !matches!(*name, "text" | "prompt"))
            .filter_map(|name| {
                let value = fields.text(name)?;
                let value = if value == order.parent { order.child } else { new.get(&*value)? };
                Some((name, quoted(value)))
            })
            .collect();
        fields.with(&changed, &[])
    };
    let mut messages = Vec::with_capacity(kept.len());
    for message in kept {
        made.extend(new.get(&*message.id).cloned());
        let mut parts = Vec::with_capacity(message.parts.len());
        for part in &message.parts {
            made.extend(part.text("id").and_then(|id| new.get(&*id).cloned()));
            parts.push(renamed(part));
        }
        messages.push(message.raw.with(&[("info", renamed(&message.info)), ("parts", array(&parts))], &[]));
    }
    let keys: Vec<String> = order.keys.iter().map(|key| quoted(key)).collect();
    let origin = object(&[("forkedFrom", quoted(order.parent)), ("turns", array(&keys))]);
    let metadata = match export.info.object("metadata") {
        Some(metadata) => metadata.with(&[(MADE_BY, origin)], &[]),
        None => object(&[(MADE_BY, origin)]),
    };
    let title = export.info.text("title").unwrap_or_default();
    let title = title.strip_suffix(" (rwd)").unwrap_or(&title);
    let time = object(&[("created", order.now.0.to_string()), ("updated", order.now.0.to_string())]);
    let changed = [
        ("id", quoted(order.child)),
        ("title", quoted(&format!("{title} (rwd)"))),
        ("metadata", metadata),
        ("time", time),
    ];
    // What is the parent's alone: where it was taken back to, where it is shown to others, whose task it is.
    let info = export.info.clone().without("revert").without("share").without("parentID").with(&changed, &[]);
    Ok((object(&[("info", info), ("messages", array(&messages))]), made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_kind_time_and_order_and_are_the_childs_own() {
        let old =
            ["msg_22db7f8ef001mR992m5BOhpBJZ", "msg_22db7f8ef001zz992m5BOhpBJZ", "prt_22db7f8f7001N5cKWUU1Ra1Wot"];
        let new = new_ids("ses_a", old.into_iter(), Path::new("db")).unwrap();
        let in_order: Vec<&String> = old.iter().map(|id| &new[id]).collect();
        assert!(in_order.is_sorted());
        for (old, new) in &new {
            assert!(new.len() == 30 && new[..HEAD] == old[..HEAD] && new != old, "{old} {new}");
        }
        assert_eq!(new, new_ids("ses_a", old.into_iter().rev(), Path::new("db")).unwrap());
        assert_ne!(new, new_ids("ses_b", old.into_iter(), Path::new("db")).unwrap());
        for odd in ["msg_1", "msg_ä2db7f8ef001mR992m5BOhpBJZ"] {
            assert_eq!(new_ids("ses_a", [odd].into_iter(), Path::new("db")).unwrap_err().code(), "UNSUPPORTED_FORMAT");
        }
    }

    /// As the client's own: `ses_dd248075dffe…` is of 1796063361186 ms.
    #[test]
    fn a_later_session_sorts_first() {
        let id = session_id(Timestamp(1_796_063_361_186), 7);
        assert!(id.starts_with("ses_dd248075") && id.len() == 30 && id.ends_with("00000000000007"), "{id}");
        assert!(session_id(Timestamp(1_796_063_361_187), 0) < id);
        assert_eq!(letters(61, 2), "0z");
        assert_eq!(letters(62, 2), "10");
    }
}
