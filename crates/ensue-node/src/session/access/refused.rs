//! Whether a user may execute a command, and what is noted if not.

use bytes::Bytes;
use ensue_acl::{Call, Context, Refusal, User};
use ensue_resp::{CommandSpec, Flags};
use ensue_types::{KeyspaceId, Reply};

/// Whether it may; whoever may do everything is asked nothing. Before it has logged in, a session may do so.
pub(in crate::session) fn may(
    user: &User,
    keyspace: KeyspaceId,
    spec: &'static CommandSpec,
    args: &[Bytes],
) -> bool {
    user.allows_all()
        || spec.flags.contains(Flags::NO_AUTH)
        || user.check(&Call { spec, args, database: keyspace }).is_ok()
}

/// The answer to a command that its user may not execute, and what is noted, with the line of its client.
pub(in crate::session) fn refusal(
    user: &User,
    keyspace: KeyspaceId,
    (spec, args): (&'static CommandSpec, &[Bytes]),
    (context, line): (Context, impl FnOnce() -> String),
) -> Option<(Reply, Refusal)> {
    if may(user, keyspace, spec, args) {
        return None;
    }
    let call = Call { spec, args, database: keyspace };
    let denied = user.check(&call).err()?;
    let refusal = Refusal {
        reason: denied.reason(),
        context,
        object: denied.object(&call),
        username: user.name().clone(),
        client_info: line().into(),
    };
    Some((denied.reply(user.name(), &call), refusal))
}
