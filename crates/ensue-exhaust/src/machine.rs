//! One core of a tiny world: the real node, and its partitions' disks, which answer at once or when they are chosen to.

use super::line::Sent;
use super::print::{self, Print, Printer};
use ensue_node::{Input, Node, NodeConfig, Output, Trace};
use ensue_sim::world::disk::Disk;
use ensue_store::disk::DiskOp;
use ensue_types::{CoreId, DatacenterId, Now, PartitionId, SessionId};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The disks of a core, by partition.
pub type Disks = BTreeMap<PartitionId, Disk>;

/// A node and its disks.
#[derive(Clone)]
pub struct Machine {
    node: Node,
    disks: Disks,
    /// Asked of the disks and not yet carried out.
    waiting: BTreeMap<PartitionId, VecDeque<DiskOp>>,
    /// Of everything that the disks ever carried out, in order.
    carried_out: Print,
    disks_wait: bool,
}

/// What a step of a core asks of its surroundings.
#[derive(Debug, Default)]
pub struct Effects {
    pub sent: Vec<(DatacenterId, CoreId, Sent)>,
    pub replies: Vec<(SessionId, Vec<u8>)>,
    pub closed: Vec<SessionId>,
    /// A partition gave up.
    pub stopped: Option<String>,
}

impl Machine {
    /// Starts a node on these disks; it reads its logs at once.
    pub fn start(config: NodeConfig, now: Now, disks: Disks, effects: &mut Effects) -> Machine {
        let node = Node::new(config, now).expect("the protocol exists");
        let waiting = BTreeMap::new();
        let mut machine = Machine { node, disks, waiting, carried_out: Print::default(), disks_wait: false };
        machine.drain(now, effects);
        machine
    }

    /// From now on the disks answer only when they are chosen to.
    pub fn let_disks_wait(&mut self) {
        self.disks_wait = true;
    }

    /// One input, and the end of its turn.
    pub fn give(&mut self, now: Now, input: Input, effects: &mut Effects) {
        self.node.on_input(now, input);
        self.drain(now, effects);
        self.end_turn(now, effects);
    }

    /// Partitions whose disks have something to do.
    pub fn busy_disks(&self) -> impl Iterator<Item = PartitionId> + '_ {
        self.waiting.iter().filter(|(_, ops)| !ops.is_empty()).map(|(&partition, _)| partition)
    }

    /// The oldest operation of a partition's disk is carried out.
    pub fn run_disk(&mut self, now: Now, partition: PartitionId, effects: &mut Effects) {
        let Some(op) = self.waiting.get_mut(&partition).and_then(VecDeque::pop_front) else { return };
        self.carry_out(now, partition, op);
        self.drain(now, effects);
        self.end_turn(now, effects);
    }

    pub fn next_timer(&self) -> Option<u64> {
        self.node.next_timer()
    }

    /// `kill -9`: what the disks have not carried out is gone.
    pub fn into_disks(self) -> Disks {
        self.disks
    }

    pub fn print(&self) -> Print {
        let mut printer = Printer::default();
        printer.print(print::of(&self.node));
        printer.print(self.carried_out);
        printer.print(print::of(&self.waiting));
        printer.finish()
    }

    fn end_turn(&mut self, now: Now, effects: &mut Effects) {
        self.node.on_input(now, Input::TurnEnd);
        self.drain(now, effects);
    }

    fn drain(&mut self, now: Now, effects: &mut Effects) {
        loop {
            while let Some(output) = self.node.next_output() {
                self.take(output, effects);
            }
            if self.disks_wait {
                return;
            }
            let busy = self.busy_disks().next();
            let Some(partition) = busy else { return };
            if let Some(op) = self.waiting.get_mut(&partition).and_then(VecDeque::pop_front) {
                self.carry_out(now, partition, op);
                self.node.on_input(now, Input::TurnEnd);
            }
        }
    }

    fn take(&mut self, output: Output, effects: &mut Effects) {
        match output {
            Output::Reply { session, bytes, wants_turn, .. } => {
                assert!(!wants_turn, "these clients ask for one thing at a time");
                effects.replies.push((session, bytes));
            }
            Output::Push { session, bytes } => effects.replies.push((session, bytes.to_vec())),
            Output::Disconnect { session } => effects.closed.push(session),
            Output::Send { datacenter, core, envelope } => {
                effects.sent.push((datacenter, core, Sent::message(envelope)));
            }
            Output::Disk { partition, op: op @ DiskOp::Overwrite { .. } } => {
                self.disks.entry(partition).or_default().run(op);
            }
            Output::Disk { partition, op } => self.waiting.entry(partition).or_default().push_back(op),
            Output::Trace(Trace::PartitionStopped { partition, reason }) => {
                effects.stopped = Some(format!("{partition}: {reason}"));
            }
            Output::Trace(_)
            | Output::Stopped
            | Output::Observed { .. }
            | Output::Errand { .. }
            | Output::Audit(_)
            | Output::Confirm { .. }
            | Output::Configure(_)
            | Output::Openness { .. } => {}
        }
    }

    fn carry_out(&mut self, now: Now, partition: PartitionId, op: DiskOp) {
        if !matches!(op, DiskOp::List | DiskOp::Read { .. }) {
            let mut printer = Printer::default();
            printer.print(self.carried_out);
            printer.print(print::of_parts(&(partition, &op)));
            self.carried_out = printer.finish();
        }
        let disk = self.disks.entry(partition).or_default();
        let sync = if let DiskOp::Sync { file } = op { Some(file) } else { None };
        let done = disk.run(op).or_else(|| sync.map(|file| disk.sync_done(file)));
        if let Some(done) = done {
            self.node.on_input(now, Input::Disk { partition, done });
        }
    }
}

/// A machine that many states share, with its fingerprint.
#[derive(Clone)]
pub struct Shared {
    pub machine: Rc<Machine>,
    pub print: Print,
}

impl Shared {
    pub fn new(machine: Machine) -> Shared {
        let print = machine.print();
        Shared { machine: Rc::new(machine), print }
    }
}
