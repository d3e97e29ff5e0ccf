//! The watched keys of a transaction are checked at their owner, in the step that executes the transaction.

use super::Keyspaces;
use crate::evaluate::Evaluation;
use crate::partition::cx::Cx;
use crate::view::{OwnToo, Shown, view_of};
use bytes::Bytes;
use ensue_protocol::Choice;
use ensue_resp::number::parse_i64;
use ensue_store::view::View;
use ensue_types::{Args, KeyspaceId, LogicalTime, Reply, Rule};

/// The answer to the check of what is watched.
pub(in crate::partition) const STANDS: Reply = Reply::Integer(1);

/// A number under which nothing is watched.
const NEVER: Reply = Reply::Integer(0);

/// Whether a command of a transaction is the check that stands before all others: `watched`, which is no command of
/// clients, and each watched key with its number.
pub(in crate::partition) fn is_check(args: &Args) -> bool {
    args[0].eq_ignore_ascii_case(b"watched")
}

impl Keyspaces {
    /// Whether nothing has happened to the watched keys.
    pub(in crate::partition) fn are_as_watched(
        &mut self,
        cx: &Cx,
        keyspace: KeyspaceId,
        at: LogicalTime,
        choice: &Choice,
        check: &Args,
    ) -> bool {
        if !Rule::ExecChecksWatches.holds() {
            return true;
        }
        let number = usize::from(keyspace.0);
        let shown = Shown::of(cx.protocols[number].as_ref(), choice);
        let view = view_of(&shown, View::Newest);
        let mut evaluation = Evaluation::reading(&mut self.keyspaces[number], at, view);
        let mut keys = check[1..].chunks_exact(2);
        let stands = keys.clone().all(|watch| {
            let number = parse_i64(&watch[1]).and_then(|number| u64::try_from(number).ok());
            number.is_some_and(|number| evaluation.is_as_watched(&watch[0], number) == Ok(true))
        });
        stands && !keys.any(|watch| shown.is_some_and(|shown| self.hides_own(number, at, shown, &watch[0])))
    }

    /// The answer to `WATCH`, in which keys have no number at which a write of this datacenter is hidden from the
    /// session: it may be shown before the transaction ends, and then nobody knows that it was not always.
    pub(super) fn numbers_without_hidden(
        &mut self,
        (keyspace, at): (usize, LogicalTime),
        shown: Shown<'_>,
        keys: &[Bytes],
        reply: Reply,
    ) -> Reply {
        let Reply::Array(mut numbers) = reply else { return reply };
        for (key, number) in keys.iter().zip(&mut numbers) {
            if Rule::WatchSeesAllOfItsDatacenter.holds() && self.hides_own(keyspace, at, shown, key) {
                *number = NEVER;
            }
        }
        Reply::Array(numbers)
    }

    /// Whether a write of this datacenter to a key is hidden from a session: it may have been there, unseen, when the
    /// session began to watch.
    fn hides_own(&mut self, keyspace: usize, at: LogicalTime, shown: Shown<'_>, key: &[u8]) -> bool {
        let mut sources = |view| {
            let mut evaluation = Evaluation::reading(&mut self.keyspaces[keyspace], at, view);
            evaluation.kind(key).map(|_| evaluation.observed.sources)
        };
        let with_own = OwnToo(shown);
        sources(View::Visibility(&shown)) != sources(View::Visibility(&with_own))
    }
}
