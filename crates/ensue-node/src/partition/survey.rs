//! Figures of a partition, for `INFO` and `ensue status`: summed over partitions by name.

use super::{Partition, Stage};
use ensue_types::KeyspaceId;

impl Partition {
    /// The figures, by name; all can be added up over partitions.
    pub(super) fn survey(&mut self) -> Vec<(String, i64)> {
        let mut figures: Vec<(String, i64)> = Vec::new();
        let mut add = |name: &str, value: u64| figures.push((name.to_owned(), value as i64));
        add("memory_bytes", self.memory_bytes());
        add("backlog_bytes", self.persistence.backlog_bytes());
        add("log_bytes", self.persistence.log_bytes());
        add("waiting_entries", self.intake.len() as u64);
        add("open_dependency_checks", self.intake.open_checks() as u64);
        add("dependency_waits", self.intake.waited());
        add("transactions", self.transactions.len() as u64);
        add("waiting_reads", self.waiting_reads() as u64);
        add("waiting_rows", self.order.len() as u64);
        add("cells", self.rows.iter().map(|rows| rows.cells()).sum());
        add("stopped", u64::from(!matches!(self.stage, Stage::Serving)));
        let (tombstones, live) = self.count_rows();
        add("tombstones", tombstones);
        for (keyspace, (keys, expires)) in live {
            add(&format!("keys_{}", keyspace.0), keys);
            add(&format!("expires_{}", keyspace.0), expires);
        }
        for (datacenter, sender) in &self.senders {
            let name = &self.config.topology.datacenters[usize::from(datacenter.0)].name;
            add(&format!("lag_{name}_entries"), self.position.0 - sender.synced().0.min(self.position.0));
            add(
                &format!("unreceived_{name}_entries"),
                self.position.0 - sender.received().0.min(self.position.0),
            );
            add(&format!("linked_{name}"), u64::from(sender.is_resumed()));
        }
        figures
    }

    /// Dead cells, and for each keyspace in use its shown rows and those with a deadline.
    fn count_rows(&mut self) -> (u64, Vec<(KeyspaceId, (u64, u64))>) {
        let at = self.promise();
        let rules = self.config.rules;
        let mut tombstones = 0;
        let mut live = Vec::new();
        for (number, rows) in self.rows.iter().enumerate() {
            let (mut keys, mut expires) = (0, 0);
            for row in rows.rows() {
                let dead = row.all_cells().filter(|(_, cell)| !cell.state().is_live(rules)).count() as u64;
                tombstones += dead;
                let deadline = row.deadline_at(at, rules).ok().flatten();
                let expired = deadline.is_some_and(|deadline| deadline <= at.ms());
                if expired {
                    tombstones += row.columns_count() as u64;
                } else if row.kind(rules).is_some() {
                    keys += 1;
                    expires += u64::from(deadline.is_some());
                }
            }
            if keys > 0 {
                live.push((KeyspaceId(number as u8), (keys, expires)));
            }
        }
        (tombstones, live)
    }
}
