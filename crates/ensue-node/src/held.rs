//! A partition, and what arrives for it while one of its scripts has paused.
//!
//! - Everything is held in the order in which it came, and taken when the script has ended: nothing that it does may be
//!   seen to happen between two steps of the script. Whoever sends has a bound for what it may have outstanding.
//! - On `SCRIPT KILL`, `FUNCTION KILL`, `FUNCTION STATS` and a query for metrics: it is answered at once. These are
//!   about the script, or about no row.
//! - On a request of a session, when the script has run for so long that commands are refused: it is refused with
//!   `BUSY`, and so are those that are held. What tells that a session does not wait any longer is held.
//! - On a stop, or when the disk has failed: the script is stopped, and everything that was held is taken before.

use crate::partition::Partition;
use ensue_store::disk::DiskDone;
use ensue_types::{Args, DatacenterId, Now, PartitionId, Reply};
use ensue_wire::{CoreName, Envelope, Message};
use std::collections::{BTreeSet, VecDeque};
use std::ops::{Deref, DerefMut};

/// See the module. What is no input of the partition passes by.
#[derive(Clone, Debug)]
pub(crate) struct Holding {
    partition: Partition,
    /// What is held, oldest first.
    held: VecDeque<Held>,
}

/// An input of a partition. What depends on where partitions are was found out when it came.
#[derive(Clone, Debug)]
enum Held {
    Message(Box<Envelope>),
    Disk(DiskDone),
    LinkUp(DatacenterId, BTreeSet<PartitionId>),
    LinkDown(CoreName, BTreeSet<PartitionId>),
    OwnerLost(DatacenterId, BTreeSet<PartitionId>),
}

impl Deref for Holding {
    type Target = Partition;

    fn deref(&self) -> &Partition {
        &self.partition
    }
}

impl DerefMut for Holding {
    fn deref_mut(&mut self) -> &mut Partition {
        &mut self.partition
    }
}

impl Holding {
    pub(crate) fn new(partition: Partition) -> Holding {
        Holding { partition, held: VecDeque::new() }
    }

    pub(crate) fn on_message(&mut self, now: Now, envelope: Envelope) {
        if !self.is_in_script() {
            return self.partition.on_message(now, envelope);
        }
        self.partition.cx.now = now;
        let from = envelope.from;
        match &envelope.message {
            Message::MetricsQuery { request } => {
                let (request, metrics) = (*request, self.partition.metrics());
                self.partition.cx.send_ahead(from, Message::MetricsAnswer { request, metrics });
            }
            Message::Execute { request, context, commands, .. } => match about_script(commands) {
                Some(about) => {
                    let (reply, end) = self.answer(&about);
                    let (request, context, replies) = (*request, context.clone(), vec![reply]);
                    self.partition.cx.send_ahead(from, Message::Executed { request, context, replies });
                    if let Some(reply) = end {
                        self.partition.executor().stop_script(reply);
                        self.release(now);
                    }
                }
                None => self.hold_or_refuse(envelope),
            },
            _ => self.hold_or_refuse(envelope),
        }
    }

    pub(crate) fn on_disk(&mut self, now: Now, done: DiskDone) {
        let is_fatal = matches!(&done, DiskDone::Failed { file, full, .. } if file.is_none() || !full);
        if is_fatal {
            self.stop_scripts(now);
        }
        match self.is_in_script() {
            true => self.held.push_back(Held::Disk(done)),
            false => self.partition.on_disk(now, done),
        }
    }

    pub(crate) fn on_link_up(
        &mut self,
        now: Now,
        datacenter: DatacenterId,
        owns: &dyn Fn(PartitionId) -> bool,
    ) {
        match self.is_in_script() {
            true => self.held.push_back(Held::LinkUp(datacenter, self.partitions_of(owns))),
            false => self.partition.on_link_up(now, datacenter, owns),
        }
    }

    pub(crate) fn on_link_down(&mut self, now: Now, to: CoreName, owns: &dyn Fn(PartitionId) -> bool) {
        match self.is_in_script() {
            true => self.held.push_back(Held::LinkDown(to, self.partitions_of(owns))),
            false => self.partition.on_link_down(now, to, owns),
        }
    }

    pub(crate) fn on_owner_lost(
        &mut self,
        now: Now,
        datacenter: DatacenterId,
        lost: &dyn Fn(PartitionId) -> bool,
    ) {
        match self.is_in_script() {
            true => self.held.push_back(Held::OwnerLost(datacenter, self.partitions_of(lost))),
            false => self.partition.on_owner_lost(now, datacenter, lost),
        }
    }

    /// A turn that ends between two steps of a script writes nothing.
    pub(crate) fn on_turn_end(&mut self) {
        if !self.is_in_script() {
            self.partition.on_turn_end();
        }
    }

    pub(crate) fn check_invariants(&self) {
        // What a script has changed so far is not logged yet.
        if !self.is_in_script() {
            self.partition.check_invariants();
        }
    }

    pub(crate) fn next_timer(&self) -> Option<u64> {
        match self.is_in_script() {
            true => self.partition.keyspaces.script_due_us(),
            false => self.partition.next_timer(),
        }
    }

    /// The script goes on, if its time has come; when it has ended, everything that was held is taken.
    pub(crate) fn on_timer(&mut self, now: Now) {
        let Some(due_us) = self.partition.keyspaces.script_due_us() else {
            return self.partition.on_timer(now);
        };
        if due_us > now.monotonic_us {
            return;
        }
        self.partition.cx.now = now;
        self.partition.executor().resume_script();
        self.release(now);
        self.refuse_if_busy();
        let Partition { cx, keyspaces, .. } = &mut self.partition;
        keyspaces.report_script(cx);
    }

    /// A message of this datacenter was refused before it came here.
    pub(crate) fn count_refused(&mut self, by: DatacenterId) {
        self.partition.count_refused(by);
    }

    pub(crate) fn shut_down(&mut self) {
        self.stop_scripts(self.partition.cx.now);
        self.partition.shut_down();
    }

    /// Stops scripts, one after the other, and takes what was held.
    fn stop_scripts(&mut self, now: Now) {
        while self.is_in_script() {
            self.partition.cx.now = now;
            self.partition.executor().stop_scripts();
            self.release(now);
        }
    }

    fn is_in_script(&self) -> bool {
        self.partition.keyspaces.is_in_script()
    }

    fn partitions_of(&self, holds: &dyn Fn(PartitionId) -> bool) -> BTreeSet<PartitionId> {
        let partitions = self.partition.cx.partitions();
        (0..partitions).map(PartitionId).filter(|id| holds(*id)).collect()
    }

    /// What is answered about the script, and with what it ends if it does.
    fn answer(&self, about: &About) -> (Reply, Option<Reply>) {
        let keyspaces = &self.partition.keyspaces;
        match about {
            About::Kill { function } => match keyspaces.killed_by(*function) {
                Ok(words) => (Reply::OK, Some(words)),
                Err(refusal) => (refusal, None),
            },
            About::Statistics => (keyspaces.function_statistics(self.partition.cx.now), None),
        }
    }

    fn hold_or_refuse(&mut self, envelope: Envelope) {
        let Partition { cx, keyspaces, .. } = &mut self.partition;
        match keyspaces.busy_refusal(cx.now).filter(|_| may_be_refused(&envelope.message)) {
            Some(words) => cx.refuse_ahead(&envelope, words),
            None => self.held.push_back(Held::Message(Box::new(envelope))),
        }
    }

    /// Refuses what sessions have asked, if the script has run for so long.
    fn refuse_if_busy(&mut self) {
        let Holding { partition: Partition { cx, keyspaces, .. }, held } = self;
        let Some(words) = keyspaces.busy_refusal(cx.now) else { return };
        held.retain(|input| match input {
            Held::Message(envelope) if may_be_refused(&envelope.message) => {
                cx.refuse_ahead(envelope, words);
                false
            }
            _ => true,
        });
    }

    /// Takes what was held, unless the script has not ended, or until another one pauses.
    fn release(&mut self, now: Now) {
        if self.is_in_script() {
            return;
        }
        let partition = &mut self.partition;
        partition.executor().settle();
        partition.executor().read_what_is_answered();
        partition.executor().resume_blocked();
        partition.deliver_buffered();
        partition.finish_catching_up();
        while !partition.keyspaces.is_in_script() {
            match self.held.pop_front() {
                Some(Held::Message(envelope)) => partition.on_message(now, *envelope),
                Some(Held::Disk(done)) => partition.on_disk(now, done),
                Some(Held::LinkUp(datacenter, owned)) => {
                    partition.on_link_up(now, datacenter, &|partition| owned.contains(&partition))
                }
                Some(Held::LinkDown(to, owned)) => {
                    partition.on_link_down(now, to, &|partition| owned.contains(&partition))
                }
                Some(Held::OwnerLost(datacenter, lost)) => {
                    partition.on_owner_lost(now, datacenter, &|partition| lost.contains(&partition))
                }
                None => return,
            }
        }
    }
}

/// What a command asks about the script that runs.
enum About {
    /// As a function of a library, or as a script.
    Kill {
        function: bool,
    },
    Statistics,
}

fn about_script(commands: &[Args]) -> Option<About> {
    let [args] = commands else { return None };
    let [name, word] = args.as_slice() else { return None };
    match (name.to_ascii_lowercase().as_slice(), word.to_ascii_lowercase().as_slice()) {
        (b"script", b"kill") => Some(About::Kill { function: false }),
        (b"function", b"kill") => Some(About::Kill { function: true }),
        (b"function", b"stats") => Some(About::Statistics),
        _ => None,
    }
}

/// Whether a message is a request that a client is answered, and that changes nothing by being refused.
fn may_be_refused(message: &Message) -> bool {
    match message {
        // The end of a wait is told so.
        Message::Execute { commands, .. } => {
            !commands.iter().any(|args| args.first().is_some_and(|name| name.eq_ignore_ascii_case(b"causal")))
        }
        Message::ReadFirst { .. }
        | Message::ReadAt { .. }
        | Message::Transact { .. }
        | Message::ReadSnapshot { .. }
        | Message::ReadSnapshotPart { .. } => true,
        _ => false,
    }
}
