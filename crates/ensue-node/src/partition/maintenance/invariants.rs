//! What always holds between two turns, whatever the others say and the disk does.
//!
//! A debug build checks it after every turn while little waits, and the simulator, rows included, after every turn of a
//! share of its seeds. Every check panics: what contradicts itself must not go on to log and replicate that.

use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::maintenance::collect::Collector;
use crate::partition::others::Others;
use crate::partition::peers::Peers;
use crate::partition::reads::Reads;
use crate::partition::transactions::Transactions;
use ensue_types::Rule;

/// How many things a check may look at for each turn since the one before.
const LOOKED_AT_A_TURN: usize = 32;

/// When the next check is due: a turn pays for a bounded share of it, however much waits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Checks {
    turns_left: usize,
}

impl Checks {
    /// Counts a turn; when it is time, checks, which answers at how many things it looked.
    pub(super) fn on_turn_end(&mut self, check: impl FnOnce() -> usize) {
        match self.turns_left.checked_sub(1) {
            Some(left) => self.turns_left = left,
            None => self.turns_left = check() / LOOKED_AT_A_TURN,
        }
    }
}

/// The parts that are checked, alone and against each other.
pub(in crate::partition) struct Parts<'a> {
    pub cx: &'a Cx,
    pub others: &'a Others,
    pub keyspaces: &'a Keyspaces,
    pub transactions: &'a Transactions,
    pub reads: &'a Reads,
    pub peers: &'a Peers,
}

impl Parts<'_> {
    /// Panics if a part contradicts itself, or another one. It looks at what waits, and not at the rows; answers at how
    /// many things it looked.
    pub(super) fn check(&self, collector: &Collector) -> usize {
        // A broken rule may break an invariant, too; what follows from that is for the oracle to see.
        if !Rule::all_hold() {
            return 0;
        }
        let Parts { cx, others, keyspaces, transactions, reads, peers } = self;
        let looked_at = [
            cx.journal.check_invariants(),
            others.check_invariants(),
            collector.check_invariants(cx.datacenter),
            keyspaces.branching.check_invariants(),
            peers.identity.check_invariants(cx.datacenter),
            keyspaces.order.check_invariants(),
            transactions.check_invariants(|work| keyspaces.order.work(work).is_some()),
            reads.check_invariants(keyspaces),
            peers.buffered.check_invariants(),
        ];
        let (applied, end) = (others.replication.applied_through(cx.datacenter), cx.position);
        assert!(applied <= end, "{applied} is applied of a stream that ends at {end}");
        looked_at.iter().sum()
    }
}
