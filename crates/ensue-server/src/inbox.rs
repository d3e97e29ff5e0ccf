//! What the threads of a node send to a core: a list under a mutex that the core swaps out once a turn.
//!
//! Mail of one sender arrives in order. A sender wakes the core only when the list was empty. Messages between cores
//! of a node pass through here as values and are never encoded.

use crate::disk::syncer::SyncDone;
use crate::listener::Guest;
use crate::peers::Resolved;
use ensue_types::PartitionId;
use ensue_wire::Envelope;
use mailbox::Mailbox;
use mio::Waker;
use std::sync::Arc;

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
    Shutdown,
}

/// The inbox of one core.
#[derive(Debug)]
pub(crate) struct Inbox {
    mail: Mailbox<Mail>,
    waker: Arc<Waker>,
}

impl Inbox {
    pub(crate) fn new(waker: Arc<Waker>) -> Inbox {
        Inbox { mail: Mailbox::new(), waker }
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
