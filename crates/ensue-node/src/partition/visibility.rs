//! What becomes visible, and when.

pub(in crate::partition) mod arrivals;
pub(in crate::partition) mod branches;
pub(in crate::partition) mod failed;
pub(in crate::partition) mod homes;
pub(in crate::partition) mod recovery;
pub(in crate::partition) mod retired;
pub(in crate::partition) mod transactions;
pub(in crate::partition) mod unrecoverable;

use crate::partition::cx::Cx;
use crate::partition::keyspaces::Keyspaces;
use crate::partition::others::Others;
use crate::partition::transactions::Transactions;

/// What becomes visible, and when: entries and parts of transactions whose dependencies are met, applied, or discarded.
/// A machine over parts of the partition, for as long as it runs.
pub(crate) struct Visibility<'a> {
    pub(in crate::partition) cx: &'a mut Cx,
    pub(in crate::partition) others: &'a mut Others,
    pub(in crate::partition) keyspaces: &'a mut Keyspaces,
    pub(in crate::partition) transactions: &'a mut Transactions,
}
