//! The own datacenter is to be removed: whether it can be now, and what it is told of its end.

use super::Others;
use crate::partition::cx::Cx;
use crate::partition::failover::failed::state_hash;
use crate::partition::failover::retirement::EVERYTHING;
use crate::trace::Trace;
use ensue_store::record::Record;
use ensue_types::{DatacenterId, Reply};
use ensue_wire::{Address, Envelope, Message};

/// What a datacenter is told of its own end.
pub(in crate::partition) enum Told {
    /// The others go on without it, and may lack what it has.
    Dead,
    /// Some of the others know that it has ended in good order, and this partition has yet to tell the rest.
    RetiredBySome,
    /// Every other living datacenter knows it, or this partition cannot tell them.
    Retired,
}

impl Others {
    /// From now on no write is taken here.
    pub(in crate::partition) fn begin_to_retire(&mut self, cx: &mut Cx) {
        if self.failover.retirement.is_begun() {
            return;
        }
        cx.journal.log(&Record::Retiring { datacenter: cx.datacenter });
        self.failover.retirement.begin(cx.journal.log_end());
        cx.trace(Trace::Retiring { partition: cx.id });
    }

    /// An operator asks whether this datacenter can be removed, or confirms that it shall be.
    pub(in crate::partition) fn execute_retire(&mut self, cx: &mut Cx, confirmed: bool) -> Reply {
        if confirmed {
            self.begin_to_retire(cx);
            return Reply::OK;
        }
        let dead = self.failover.failed.datacenters().map(|datacenter| datacenter.0);
        let state = state_hash([&cx.id.0.to_le_bytes()[..], &dead.collect::<Vec<_>>()]);
        let reason = self.reason_to_stay(cx).unwrap_or_default();
        let is_begun = i64::from(self.failover.retirement.is_begun());
        Reply::Array(vec![
            Reply::bulk(format!("{state:016x}")),
            Reply::bulk(reason),
            Reply::Integer(is_begun),
        ])
    }

    /// Why the datacenter cannot be removed now.
    fn reason_to_stay(&self, cx: &Cx) -> Option<String> {
        let failed = &self.failover.failed;
        let not_retired = |datacenter: &DatacenterId| !failed.is_retired(*datacenter);
        if let Some(dead) = failed.datacenters().find(not_retired) {
            return Some(format!("{} was declared dead", cx.name_of(dead)));
        }
        if self.is_catching_up() {
            return Some(format!("partition {} is still taking back what others have", cx.id));
        }
        if self.living().next().is_none() {
            return Some("no other datacenter is left".to_owned());
        }
        let retires = |datacenter: &DatacenterId| !failed.contains(*datacenter);
        if let Some(other) = self.failover.retirement.others().find(retires) {
            return Some(format!("{} is being removed; wait until it is", cx.name_of(other)));
        }
        let is_away = |datacenter: &DatacenterId| {
            let sender = self.replication.sender(*datacenter);
            !failed.is_linked(*datacenter) || !sender.is_some_and(|sender| sender.is_resumed())
        };
        let away = self.living().find(is_away)?;
        let id = cx.id;
        Some(format!(
            "partition {id} of {} is not linked, or is starting or filling its directory",
            cx.name_of(away)
        ))
    }

    /// Whether a session is answered no more, since all that matters elsewhere is there; then it is told.
    pub(in crate::partition) fn refuses_as_retired(&self, cx: &mut Cx, envelope: &Envelope) -> bool {
        if !self.failover.retirement.is_silent() || !matches!(envelope.from, Address::Core { .. }) {
            return false;
        }
        let reason = cx.word_of_retirement();
        cx.refuse(envelope, &reason);
        true
    }

    /// Another partition says that this datacenter has ended. With `serves`, this partition can tell the others itself.
    pub(in crate::partition) fn notified_of_end(
        &mut self,
        by: DatacenterId,
        message: &Message,
        serves: bool,
    ) -> Told {
        if !matches!(message, Message::DatacenterFailed { time, .. } if *time == EVERYTHING) {
            return Told::Dead;
        }
        self.failover.retirement.note_acknowledged_by(by);
        let mut living = self.living();
        match serves && !living.all(|datacenter| self.failover.retirement.is_acknowledged_by(datacenter)) {
            true => Told::RetiredBySome,
            false => Told::Retired,
        }
    }
}
