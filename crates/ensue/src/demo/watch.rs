//! Bob, in dc3, reloading the album page all the time: a thread that looks, and counts what must never be seen.
//!
//! Each look is one snapshot: a transaction that only reads.

use super::session::Session;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(1);

/// What is in the album page.
pub(super) const PAGE: [&[&str]; 3] =
    [&["SMEMBERS", "album:readers"], &["SMEMBERS", "album:photos"], &["HGETALL", "album:comments"]];
/// The photo that is not for everybody.
pub(super) const PARTY: &str = "photo:2";

/// What Bob saw.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) looks: u64,
    /// The photo was in the album, and Bob still on the list.
    pub(super) leaks: u64,
    /// A reply without the comment that it answers, or a comment without the photo that it is about.
    pub(super) orphans: u64,
}

pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<anyhow::Result<Seen>>,
}

impl Watch {
    pub(super) fn start(session: Session) -> Watch {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || look_again_and_again(session, &stopped));
        Watch { stop, thread }
    }

    pub(super) fn finish(self) -> anyhow::Result<Seen> {
        self.stop.store(true, Ordering::Release);
        self.thread.join().map_err(|_| anyhow::anyhow!("the thread that watches dc3 panicked"))?
    }
}

fn look_again_and_again(mut session: Session, stopped: &AtomicBool) -> anyhow::Result<Seen> {
    let mut seen = Seen::default();
    while !stopped.load(Ordering::Acquire) {
        look(&mut session)?.count(&mut seen);
        thread::sleep(PAUSE);
    }
    Ok(seen)
}

/// The album page at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) bob_may_look: bool,
    pub(super) has_party: bool,
    pub(super) has_comment: bool,
    pub(super) has_reply: bool,
}

pub(super) fn look(session: &mut Session) -> anyhow::Result<Page> {
    let answers = session.transaction(&PAGE)?;
    let [readers, photos, comments] = answers.as_slice() else { anyhow::bail!("half a page: {answers:?}") };
    Ok(Page {
        bob_may_look: readers.contains("bob"),
        has_party: photos.contains(PARTY),
        has_comment: comments.contains("1"),
        has_reply: comments.contains("2"),
    })
}

impl Page {
    pub(super) fn leaks(self) -> bool {
        self.bob_may_look && self.has_party
    }

    fn count(self, seen: &mut Seen) {
        seen.looks += 1;
        seen.leaks += u64::from(self.leaks());
        let orphan = (self.has_reply && !self.has_comment) || (self.has_comment && !self.has_party);
        seen.orphans += u64::from(orphan);
    }
}
