//! Commands that every partition of the datacenter answers, and SCAN, which goes from one to the next.
//!
//! They walk keyspaces and take no part in snapshots: each partition answers for its own moment. A cursor of SCAN is the
//! owner's cursor times the number of partitions, plus the partition's number; 0 begins and ends.

use super::combine::Combination;
use super::parallel::Then;
use super::plan::Plan;
use super::turn::Turn;
use ensue_resp::{CommandSpec, Request};
use ensue_types::{Args, KeyspaceId, PartitionId, Reply};

impl Turn<'_> {
    pub(super) fn everywhere(&mut self, spec: &'static CommandSpec, args: Args) {
        let request = match Request::parse_as(spec, &args) {
            Ok(request) => request,
            Err(error) => return self.reply(&error.reply()),
        };
        let own = [self.session.keyspace];
        // It walks all rows.
        self.session.turn.up = true;
        match request {
            Request::Scan { options, .. } => self.scan(options.cursor, args),
            Request::Size => self.ask_everywhere(Combination::Sum, false, &own, &args),
            Request::Keys { .. } => self.ask_everywhere(Combination::Concatenate, false, &own, &args),
            Request::RandomKey => {
                let start = (self.session.next_sequence % u64::from(self.desk.partitions())) as usize;
                self.ask_everywhere(Combination::First { start }, false, &own, &args);
            }
            Request::Flush { every_keyspace: false } => {
                self.ask_everywhere(Combination::AllOk, true, &own, &args);
            }
            Request::Flush { every_keyspace: true } => {
                let all: Vec<KeyspaceId> = (0..self.session.contexts.len() as u8).map(KeyspaceId).collect();
                self.ask_everywhere(Combination::AllOk, true, &all, &args);
            }
            _ => self.reply(&Reply::error("ERR internal error: no partition answers this command")),
        }
    }

    /// Has every partition execute a command, in each of these keyspaces.
    pub(super) fn ask_everywhere(
        &mut self,
        how: Combination,
        writes: bool,
        keyspaces: &[KeyspaceId],
        args: &Args,
    ) {
        let mut plan = Plan::single(self.desk.partitions());
        plan.add_everywhere(how, writes, (0..self.desk.partitions()).map(PartitionId), args);
        self.ask(1);
        self.execute_in_parallel(plan, keyspaces, Then::Answer);
    }

    fn scan(&mut self, cursor: u64, mut args: Args) {
        let partitions = self.desk.partitions();
        let partition = (cursor % u64::from(partitions)) as u16;
        args[1] = (cursor / u64::from(partitions)).to_string().into();
        let mut plan = Plan::single(partitions);
        let how = Combination::Scan { partition, partitions };
        plan.add_everywhere(how, false, std::iter::once(PartitionId(partition)), &args);
        self.ask(1);
        let keyspaces = [self.session.keyspace];
        self.execute_in_parallel(plan, &keyspaces, Then::Answer);
    }
}
