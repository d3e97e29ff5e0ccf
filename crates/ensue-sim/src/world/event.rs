//! What will happen in the simulated world, and the one queue that orders it by time, then by order of scheduling.

use crate::world::network::Break;
use crate::world::shape::{ProcessId, Site};
use ensue_node::Input;
use ensue_store::disk::{DiskOp, FileName};
use ensue_types::{DatacenterId, PartitionId};
use ensue_wire::Envelope;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A client's connection, counted over the whole world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// A wake-up call that whoever drives the world has ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Alarm {
    /// A client has thought enough.
    Client(usize),
    /// The fault of this number in the plan strikes, or is lifted.
    Fault(usize),
    FaultEnds(usize),
    /// A process that an aimed crash has killed starts again.
    Start(ProcessId),
    /// An operator asks again.
    Ask(ConnectionId),
    /// The driver only wanted to stop here.
    Pause,
}

/// Something that happens at a moment.
#[derive(Debug, Hash)]
pub enum Event {
    /// `boot` is the receiver's: what was on its way to an earlier life of a process never arrives.
    Deliver {
        from: Site,
        to: Site,
        boot: u32,
        epoch: u32,
        envelope: Box<Envelope>,
    },
    /// One end of a connection between cores learns that it is up or down.
    LinkEnd {
        site: Site,
        peer: Site,
        up: bool,
        boot: u32,
        epoch: u32,
    },
    Reconnect {
        a: Site,
        b: Site,
    },
    /// A connection breaks and may come back at once.
    Flap {
        a: Site,
        b: Site,
        how: Break,
    },
    /// A process is killed and starts again at once.
    Restart {
        process: ProcessId,
    },
    /// The processes of a datacenter that is to be given other times had the time to stop.
    RecoverClock {
        datacenter: DatacenterId,
    },
    /// A core that was stopped, or is slow, has time for what waits for it.
    Resume {
        site: Site,
        boot: u32,
    },
    /// A process that was asked to stop has done everything.
    Exit {
        process: ProcessId,
        boot: u32,
    },
    DiskRun {
        site: Site,
        boot: u32,
        partition: PartitionId,
        op: DiskOp,
    },
    DiskSynced {
        site: Site,
        boot: u32,
        partition: PartitionId,
        file: FileName,
    },
    Timer {
        site: Site,
        boot: u32,
        at: u64,
    },
    TurnEnd {
        site: Site,
        boot: u32,
    },
    Client {
        site: Site,
        boot: u32,
        input: Box<Input>,
    },
    Answer {
        connection: ConnectionId,
        bytes: Vec<u8>,
        answered: u32,
    },
    Hangup {
        connection: ConnectionId,
    },
    Alarm(Alarm),
}

impl Event {
    /// The core whose own time this event takes: a core that is stopped or busy takes it later.
    pub fn core(&self) -> Option<Site> {
        match self {
            Event::Deliver { to: site, .. }
            | Event::LinkEnd { site, .. }
            | Event::DiskRun { site, .. }
            | Event::DiskSynced { site, .. }
            | Event::Timer { site, .. }
            | Event::TurnEnd { site, .. }
            | Event::Client { site, .. } => Some(*site),
            _ => None,
        }
    }
}

struct Scheduled {
    at: u64,
    ordinal: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Scheduled) -> bool {
        self.ordinal == other.ordinal
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Scheduled) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    /// Reversed, since the heap gives its greatest first.
    fn cmp(&self, other: &Scheduled) -> Ordering {
        (other.at, other.ordinal).cmp(&(self.at, self.ordinal))
    }
}

/// Everything that is going to happen.
#[derive(Default)]
pub struct Queue {
    heap: BinaryHeap<Scheduled>,
    ordinal: u64,
}

impl Queue {
    pub fn push(&mut self, at: u64, event: Event) {
        self.ordinal += 1;
        self.heap.push(Scheduled { at, ordinal: self.ordinal, event });
    }

    pub fn pop(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|scheduled| (scheduled.at, scheduled.event))
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|scheduled| scheduled.at)
    }
}
