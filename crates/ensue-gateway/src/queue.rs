//! One queue of the kernel: packets in, one verdict each.

use crate::limits::{QUEUED_BYTES_MAX, QUEUED_PACKETS_MAX};
use ensue_trods::Verdict;
use nfq::{Message, Queue};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
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
    /// Opens a queue, while no other thread opens files.
    pub fn open(number: u16) -> io::Result<Self> {
        let before = open_files();
        let mut queue = Queue::open()?;
        if let Err(error) = enlarge(&before) {
            eprintln!("the kernel's buffer for packets keeps its size: {error}");
        }
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

/// The numbers of this process's open files.
fn open_files() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let mut numbers: Vec<i32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // The folder that was listed has a number too, and is closed by now.
    numbers.retain(|number| std::fs::read_link(format!("/proc/self/fd/{number}")).is_ok());
    numbers
}

/// Makes the buffer of the socket that was opened since then larger than the system lets sockets be by themselves. The
/// library keeps its socket for itself, so it is reached by its number.
fn enlarge(before: &[i32]) -> io::Result<()> {
    let opened: Vec<i32> = open_files().into_iter().filter(|number| !before.contains(number)).collect();
    let [number] = opened[..] else { return Err(io::Error::other("its socket was not found")) };
    let process = pidfd_open(getpid(), PidfdFlags::empty())?;
    let socket = pidfd_getfd(&process, number, PidfdGetfdFlags::empty())?;
    Ok(set_socket_recv_buffer_size_force(&socket, QUEUED_BYTES_MAX)?)
}
