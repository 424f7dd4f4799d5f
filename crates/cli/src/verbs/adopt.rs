//! `rwd adopt`.

use index_store::{Registry, Standing};

use crate::compose;
use crate::error::CliError;
use crate::run::Run;
use crate::wire;
use crate::{exit, text};

pub(crate) fn adopt(run: &Run) -> Result<u8, CliError> {
    let (data, start) = (compose::data_dir(run)?, run.start()?);
    let registry = Registry::new(data);
    let found = registry.find(&start)?.ok_or_else(|| compose::none_at(&registry, start))?;
    let before = found.workspace;
    let git = compose::Located::git_common_dir(&found.root);
    let after = match found.standing {
        Standing::Known | Standing::New => before.clone(),
        Standing::Moved | Standing::NewIncarnation => registry.adopt(&found.root, &before.id, git.as_deref())?,
    };
    let changed = after != before;
    let answer = wire::Adopted {
        workspace: after.id.to_string(),
        root: wire::absolute(&after.root),
        from: (after.root != before.root).then(|| wire::absolute(&before.root)),
        incarnation: after.incarnation,
        changed,
    };
    run.out.answer(&answer, |answer| match (&answer.from, answer.changed) {
        (Some(from), _) => format!("taken over from {}: workspace {}\n", from.line(), text::short(&answer.workspace)),
        (None, true) => format!(
            "taken over: older points restore with --adopt, as {}\n",
            run.typed.other(&["to", "latest", "--adopt"])
        ),
        (None, false) => "nothing to adopt: this workspace is where it was\n".to_owned(),
    })?;
    Ok(if changed { exit::OK } else { exit::NOTHING })
}
