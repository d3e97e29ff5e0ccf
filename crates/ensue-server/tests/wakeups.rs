//! No wake-up of a core is lost, whatever the order in which threads run: the mailbox's own source with the lock of a
//! scheduler that tries thousands of orders. A lost wake-up leaves the core waiting for ever, which it reports.

use mailbox::Mailbox;
use shuttle::sync::{Arc, Condvar};
use shuttle::thread;

#[path = "../src/inbox/mailbox.rs"]
mod mailbox;

mod sync {
    pub(super) use shuttle::sync::{Mutex, MutexGuard};
    pub(super) use std::sync::PoisonError;
}

/// As an eventfd: a wake-up is kept until the core waits, and several are one.
struct Bell {
    rung: sync::Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    fn new() -> Bell {
        Bell { rung: sync::Mutex::new(false), heard: Condvar::new() }
    }

    fn ring(&self) {
        *self.rung.lock().expect("no schedule panics elsewhere") = true;
        self.heard.notify_one();
    }

    fn wait(&self) {
        let mut rung = self.rung.lock().expect("no schedule panics elsewhere");
        while !*rung {
            rung = self.heard.wait(rung).expect("no schedule panics elsewhere");
        }
        *rung = false;
    }
}

/// Senders post in batches; the core waits, takes, and waits again until all mail is there.
fn core_and_senders() {
    const SENDERS: u32 = 3;
    const BATCHES: u32 = 3;
    let inbox = Arc::new(Mailbox::new());
    let bell = Arc::new(Bell::new());
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let (inbox, bell) = (inbox.clone(), bell.clone());
            thread::spawn(move || {
                for batch in 0..BATCHES {
                    let mut list = vec![(sender, 2 * batch), (sender, 2 * batch + 1)];
                    inbox.post_all(&mut list, || bell.ring());
                }
            })
        })
        .collect();
    let mut arrived = Vec::new();
    while arrived.len() < (SENDERS * BATCHES * 2) as usize {
        bell.wait();
        let mut mail = Vec::new();
        inbox.take(&mut mail);
        arrived.append(&mut mail);
    }
    for sender in 0..SENDERS {
        let of_one: Vec<u32> = arrived.iter().filter(|mail| mail.0 == sender).map(|mail| mail.1).collect();
        assert_eq!(of_one, (0..2 * BATCHES).collect::<Vec<u32>>(), "mail of one sender arrives in order");
    }
    senders.into_iter().for_each(|sender| sender.join().expect("no schedule panics elsewhere"));
}

#[test]
fn no_wake_up_is_lost_in_random_orders() {
    shuttle::check_random(core_and_senders, 2_000);
}

#[test]
fn no_wake_up_is_lost_in_orders_with_few_switches() {
    shuttle::check_pct(core_and_senders, 2_000, 3);
}

/// The test can fail: mail that finds other mail does not ring, and whoever waits for it does not return.
#[test]
#[should_panic(expected = "deadlock")]
fn a_core_that_counts_on_a_second_ring_sleeps_for_ever() {
    shuttle::check_random(
        || {
            let (inbox, bell) = (Mailbox::new(), Bell::new());
            inbox.post_all(&mut vec![1], || bell.ring());
            inbox.post_all(&mut vec![2], || bell.ring());
            bell.wait();
            bell.wait();
        },
        10,
    );
}
