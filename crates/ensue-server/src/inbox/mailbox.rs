//! The list that other threads fill and a core empties, and the rule of who wakes the core.
//!
//! A sender wakes the core if it found the list empty. The core takes all of the list after each time it was woken. So
//! whoever finds mail in the list can rely on a wake-up that the core has still to answer: none is lost. The lock
//! comes from the module around this one, so that a test can put one there that tries other orders of events.

use super::sync::{Mutex, MutexGuard, PoisonError};

/// See the module.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    mail: Mutex<Vec<T>>,
}

impl<T> Mailbox<T> {
    pub(crate) fn new() -> Mailbox<T> {
        Mailbox { mail: Mutex::new(Vec::new()) }
    }

    /// Adds everything in the list and leaves it empty; wakes the core if nothing was there.
    pub(crate) fn post_all(&self, list: &mut Vec<T>, wake: impl FnOnce()) {
        if list.is_empty() {
            return;
        }
        let was_empty = {
            let mut mail = self.lock();
            let was_empty = mail.is_empty();
            mail.append(list);
            was_empty
        };
        if was_empty {
            wake();
        }
    }

    /// Takes everything that has arrived; `list` must be empty, and its memory is reused.
    pub(crate) fn take(&self, list: &mut Vec<T>) {
        debug_assert!(list.is_empty(), "what was taken before has been handled");
        std::mem::swap(&mut *self.lock(), list);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        // A list is whole even if a thread panicked while it held the lock; the process is about to end then anyway.
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
