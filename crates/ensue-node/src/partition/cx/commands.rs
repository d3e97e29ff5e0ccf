//! What commands of sessions name, read and write.

use super::Cx;
use crate::evaluate::Writer;
use crate::partition::order::RowName;
use ensue_protocol::Choice;
use ensue_store::cell::Write;
use ensue_types::{Args, KeyspaceId, Rule, Source};

impl Cx {
    pub(crate) fn writer(&self, keyspace: KeyspaceId, write: Write, choice: &Choice) -> Writer {
        let asks_previous = self.protocol(keyspace).needs().previous_versions;
        Writer::new(write, self.datacenter.adder(choice.is_stable()), asks_previous)
    }

    /// What was read, as far as the rules let it count as the past of who read it.
    pub(crate) fn observed(&self, mut sources: Vec<Source>) -> Vec<Source> {
        if !Rule::RememberReads.holds() {
            return Vec::new();
        }
        if !Rule::CounterDependencies.holds() {
            sources.truncate(1);
        }
        sources
    }

    /// The rows that commands name.
    pub(crate) fn rows_of<'a>(
        &self,
        keyspace: KeyspaceId,
        commands: impl IntoIterator<Item = &'a Args>,
    ) -> Vec<RowName> {
        let mut rows: Vec<RowName> = Vec::new();
        for args in commands {
            let Some(spec) = ensue_resp::lookup(&args[0]) else { continue };
            for key in ensue_resp::keys(spec, args) {
                rows.push((keyspace, key.clone()));
            }
        }
        rows.sort_unstable();
        rows.dedup();
        rows
    }
}
