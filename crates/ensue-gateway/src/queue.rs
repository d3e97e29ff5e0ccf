//! One queue of the kernel: packets in, one verdict each.

use crate::limits::QUEUED_PACKETS_MAX;
use ensue_trods::Verdict;
use nfq::{Message, Queue};
use std::io;

/// A queue that this process is to decide on.
pub struct Packets {
    queue: Queue,
}

/// A packet that waits for its verdict.
pub struct Waiting {
    message: Message,
}

impl Packets {
    pub fn open(number: u16) -> io::Result<Self> {
        let mut queue = Queue::open()?;
        queue.bind(number).map_err(|error| {
            io::Error::new(error.kind(), format!("queue {number} of the kernel's packet filter: {error}"))
        })?;
        queue.set_queue_max_len(number, QUEUED_PACKETS_MAX)?;
        Ok(Self { queue })
    }

    /// Waits for the next packet.
    pub fn next(&mut self) -> io::Result<Waiting> {
        loop {
            match self.queue.recv() {
                Ok(message) => return Ok(Waiting { message }),
                // A packet that was decided on had gone: its device was taken down.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub fn decide(&mut self, mut packet: Waiting, verdict: Verdict) -> io::Result<()> {
        let decision = match verdict {
            Verdict::Accept => nfq::Verdict::Accept,
            Verdict::Drop => nfq::Verdict::Drop,
            Verdict::Replace(bytes) => {
                packet.message.set_payload(bytes);
                nfq::Verdict::Accept
            }
        };
        packet.message.set_verdict(decision);
        self.queue.verdict(packet.message)
    }

    /// Lets a packet pass, with a mark that decides its route.
    pub fn route(&mut self, mut packet: Waiting, mark: u32) -> io::Result<()> {
        packet.message.set_nfmark(mark);
        packet.message.set_verdict(nfq::Verdict::Accept);
        self.queue.verdict(packet.message)
    }
}

impl Waiting {
    pub fn bytes(&self) -> &[u8] {
        self.message.get_payload()
    }
}
