//! The watched keys of a transaction are checked at their owner, in the step that executes the transaction.

use super::Keyspaces;
use crate::evaluate::Evaluation;
use crate::partition::cx::Cx;
use crate::view::{OwnToo, Shown, view_of};
use bytes::Bytes;
use ensue_protocol::Choice;
use ensue_resp::number::parse_i64;
use ensue_store::view::View;
use ensue_types::{Args, KeyspaceId, LogicalTime, Reply, Rule, Stamp};
use std::hash::{DefaultHasher, Hash, Hasher};

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
        let mut is_as_watched = |key: &Bytes, number: &[u8]| {
            let number = parse_i64(number).and_then(|number| u64::try_from(number).ok());
            let number = number.map(|number| match number & WITH_WHAT_IS_SEEN {
                0 => number,
                _ => (number ^ WITH_WHAT_IS_SEEN) ^ seen(&mut evaluation, key),
            });
            number.is_some_and(|number| evaluation.is_as_watched(key, number) == Ok(true))
        };
        let stands = keys.clone().all(|watch| is_as_watched(&watch[0], &watch[1]));
        let mut hides_own = |shown, key| {
            self.differ(number, at, View::Visibility(&shown), View::Visibility(&OwnToo(shown)), key)
        };
        stands && !keys.any(|watch| shown.is_some_and(|shown| hides_own(shown, &watch[0])))
    }

    /// The answer to `WATCH`, in which keys have no number at which a write of this datacenter is hidden from the
    /// session: it may be shown before the transaction ends, and then nobody knows that it was not always. What another
    /// datacenter has written may be hidden for long: then the number counts what is seen, too, and is another one when
    /// that is shown.
    pub(super) fn numbers_of_what_is_seen(
        &mut self,
        (keyspace, at): (usize, LogicalTime),
        shown: Shown<'_>,
        keys: &[Bytes],
        reply: Reply,
    ) -> Reply {
        let Reply::Array(mut numbers) = reply else { return reply };
        for (key, number) in keys.iter().zip(&mut numbers) {
            let own = OwnToo(shown);
            let own_too = View::Visibility(&own);
            let hides_own = self.differ(keyspace, at, View::Visibility(&shown), own_too, key);
            if hides_own && Rule::WatchSeesAllOfItsDatacenter.holds() {
                *number = NEVER;
            } else if self.differ(keyspace, at, own_too, View::Newest, key)
                && Rule::WatchCountsWhatIsShown.holds()
            {
                let view = View::Visibility(&shown);
                let seen = seen(&mut Evaluation::reading(&mut self.keyspaces[keyspace], at, view), key);
                if let Reply::Integer(number) = number {
                    *number ^= (seen | WITH_WHAT_IS_SEEN) as i64;
                }
            }
        }
        Reply::Array(numbers)
    }

    /// Whether one view hides of a key what another one shows: it may have been there, unseen, when the session began
    /// to watch.
    fn differ(&mut self, keyspace: usize, at: LogicalTime, one: View<'_>, all: View<'_>, key: &[u8]) -> bool {
        let mut sources = |view| {
            let mut evaluation = Evaluation::reading(&mut self.keyspaces[keyspace], at, view);
            evaluation.kind(key).map(|_| evaluation.observed.sources)
        };
        sources(one) != sources(all)
    }
}

/// Marks the number of a key of which something was hidden: what was seen is in it. Numbers of changes are smaller.
const WITH_WHAT_IS_SEEN: u64 = 1 << 62;

/// What a session sees of a key, as a number of 62 bits.
fn seen(evaluation: &mut Evaluation<'_>, key: &[u8]) -> u64 {
    let mut hash = DefaultHasher::new();
    if evaluation.kind(key).is_ok() {
        for source in std::mem::take(&mut evaluation.observed.sources) {
            let Stamp { time, datacenter, partition } = source.stamp;
            (time.0, datacenter.0, partition.0).hash(&mut hash);
        }
    }
    hash.finish() >> 2
}
