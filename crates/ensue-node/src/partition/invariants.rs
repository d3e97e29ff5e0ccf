//! What always holds between two turns, whatever the others say and the disk does.
//!
//! A debug build checks it after every turn, and the simulator after every turn of a share of its seeds. Every check
//! panics: what contradicts itself must not go on to log and replicate that.

use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::transactions::Transactions;
use ensue_types::Rule;

/// Panics if a part contradicts itself, or another one. It looks at what waits, and not at the rows.
pub(super) fn check(cx: &Cx, others: &Others, keyspaces: &Keyspaces, transactions: &Transactions) {
    // A broken rule may break an invariant, too; what follows from that is for the oracle to see.
    if !Rule::all_hold() {
        return;
    }
    cx.journal.check_invariants();
    others.replication.check_invariants();
    keyspaces.order.check_invariants();
    transactions.check_invariants(|work| keyspaces.order.work(work).is_some());
    let applied = others.replication.applied.set(cx.datacenter).map(|own| own.watermark).unwrap_or_default();
    let end = cx.position;
    assert!(applied <= end, "{applied} is applied of a stream that ends at {end}");
}
