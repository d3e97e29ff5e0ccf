//! Entries that were read from the log: sent to whom they were read for, or compared with what another datacenter has.

use super::Peering;
use crate::partition::cx::refusals::ADVICE;
use crate::partition::journal::ReadFor;
use crate::partition::peers::Halt;
use ensue_store::disk::DiskDone;
use ensue_store::tail::StreamReadError;
use ensue_types::{Position, limits};

impl Peering<'_> {
    pub(in crate::partition) fn on_old_entries(&mut self, done: DiskDone) {
        let Some((purpose, read)) = self.cx.journal.on_read(done) else {
            return self.others.replication.read_old_entries(self.cx);
        };
        match read {
            Ok(mut entries) => {
                entries.truncate(frame_holds(entries.iter().map(|(_, entry)| entry.len())));
                match purpose {
                    ReadFor::Stream(datacenter) => {
                        let end = self.transactions.stream_end(self.cx);
                        self.others.replication.on_entries_read(self.cx, datacenter, entries, end)
                    }
                    ReadFor::TailFetch(datacenter, after) => {
                        self.others.replication.send_tail(self.cx, datacenter, after, entries)
                    }
                    ReadFor::PassOn(to, origin) => self.cx.pass_on(to, origin, entries),
                    ReadFor::Compare(datacenter, received, last) => {
                        self.compare_with(datacenter, received, last, &entries)
                    }
                }
            }
            Err(StreamReadError::Gone { wanted, first }) => self.refuse_what_is_gone(purpose, wanted, first),
            Err(error) => {
                return self.peers.halt(Halt::Stopped(format!("{error}{}", ADVICE)));
            }
        }
        self.others.replication.read_old_entries(self.cx);
    }

    /// What was requested is no longer in the log. Nobody whose word is true requests that: it was trimmed when every
    /// datacenter had said that it has it durably.
    fn refuse_what_is_gone(&mut self, purpose: ReadFor, wanted: Position, first: Position) {
        let (datacenter, whose) = match purpose {
            ReadFor::Stream(datacenter) => (datacenter, "this datacenter's"),
            ReadFor::TailFetch(datacenter, _) => (datacenter, "its own"),
            ReadFor::PassOn(datacenter, _) => (datacenter, "a dead datacenter's"),
            // What it has received was acknowledged, and trimmed for that: there is nothing to compare with.
            ReadFor::Compare(..) => return,
        };
        let name = self.cx.name_of(datacenter);
        self.refuse_peer(
            datacenter,
            format!(
                "{name} requests {whose} stream from position {wanted}, and the log here begins at {first}: it was \
                 trimmed when {name} had acknowledged all before. {name} runs on an old or empty directory, or one of \
                 its disks lost what was synced: put the right one back, or run CAUSAL DEAD for it"
            ),
        );
    }
}

/// How many of these entries, by their lengths, a frame has room for; at least one. A batch of the log may hold more.
/// Whoever wanted them asks again for the rest.
fn frame_holds(lengths: impl Iterator<Item = usize>) -> usize {
    let mut bytes = 0;
    let fits = |(place, length): &(usize, usize)| {
        bytes += length;
        *place == 0 || bytes <= limits::ENTRY_BYTES_MAX
    };
    lengths.enumerate().take_while(fits).count()
}

#[test]
fn a_frame_holds_one_entry_at_least_and_no_more_than_fit() {
    let most = limits::ENTRY_BYTES_MAX;
    let cases = [(vec![], 0), (vec![most + 1, 1], 1), (vec![1, most - 1, 1], 2), (vec![1, 2, 3], 3)];
    for (lengths, expected) in cases {
        assert_eq!(frame_holds(lengths.iter().copied()), expected, "{lengths:?}");
    }
}
