//! What the threads of a node send to a core: a list under a mutex that the core swaps out once a turn.
//!
//! Mail of one sender arrives in order. A sender wakes the core only when the list was empty. Messages between cores
//! of a node pass through here as values and are never encoded.

use crate::backup::Moment;
use crate::disk::syncer::SyncDone;
use crate::listener::Guest;
use crate::metrics::Question;
use crate::peers::Resolved;
use crate::visitors::Visit;
use ensue_node::ErrandDone;
use ensue_types::{PartitionId, SessionId};
use ensue_wire::Envelope;
use mailbox::Mailbox;
use mio::Waker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

mod mailbox;

/// The lock of the mailbox.
mod sync {
    pub(super) use std::sync::{Mutex, MutexGuard, PoisonError};
}

/// One thing for a core.
#[derive(Debug)]
pub(crate) enum Mail {
    Envelope(Envelope),
    /// A client that this core shall serve.
    Client(Guest),
    /// The address of a peer was looked up.
    Resolved(Resolved),
    Synced(PartitionId, SyncDone),
    /// What a session had done is done.
    ErrandDone {
        session: SessionId,
        number: u64,
        done: ErrandDone,
    },
    /// All cores stop for a moment, and keep what their disks hold.
    Moment(Arc<Moment>),
    /// Somebody watches this node; on the first core of a node.
    Observe(Question),
    /// Commands of somebody who came by the metrics port; on the first core of a node.
    Visit(Visit),
    /// No client is let in from now on; those that are connected are ended when they have their answers.
    Drain,
    Shutdown,
}

/// The inbox of one core.
#[derive(Debug)]
pub(crate) struct Inbox {
    mail: Mailbox<Mail>,
    /// The core was told to drain, and has no client any more.
    drained: AtomicBool,
    waker: Arc<Waker>,
}

impl Inbox {
    pub(crate) fn new(waker: Arc<Waker>) -> Inbox {
        Inbox { mail: Mailbox::new(), drained: AtomicBool::new(false), waker }
    }

    /// Whether the core has said that it has drained.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained.load(Ordering::Acquire)
    }

    pub(crate) fn set_drained(&self) {
        self.drained.store(true, Ordering::Release);
    }

    pub(crate) fn post(&self, mail: Mail) {
        self.post_all(&mut vec![mail]);
    }

    /// Posts everything in the list and leaves it empty.
    pub(crate) fn post_all(&self, list: &mut Vec<Mail>) {
        self.mail.post_all(list, || {
            self.waker.wake().expect("an eventfd of this process can be written");
        });
    }

    /// Takes everything that has arrived; `list` must be empty, and its memory is reused.
    pub(crate) fn take(&self, list: &mut Vec<Mail>) {
        self.mail.take(list);
    }
}
