//! What a replicated partition says waits until it is known that nobody else led when it was said.
//!
//! An owner that was cut off may have a successor, and must not answer from what it remembers (Raft, section 8). What
//! it says waits for the next question that is asked after it; one question is under way at a time.

use ensue_wire::Envelope;
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    held: VecDeque<(u64, Envelope)>,
    asked: u64,
    answered: u64,
}

impl Gate {
    /// Holds a message back until a question that is asked from now on is answered.
    pub(crate) fn hold(&mut self, envelope: Envelope) {
        self.held.push_back((self.asked + 1, envelope));
    }

    /// The number of the question to be asked now, if there is one.
    pub(crate) fn next_question(&mut self) -> Option<u64> {
        let waits = self.held.back().is_some_and(|(number, _)| *number > self.asked);
        if !waits || self.asked > self.answered {
            return None;
        }
        self.asked += 1;
        Some(self.asked)
    }

    /// A question and all before it are answered.
    pub(crate) fn on_answer(&mut self, number: u64) {
        self.answered = self.answered.max(number.min(self.asked));
    }

    /// The next message that may leave.
    pub(crate) fn next(&mut self) -> Option<Envelope> {
        let may_leave = self.held.front().is_some_and(|(number, _)| *number <= self.answered);
        if may_leave { self.held.pop_front().map(|(_, envelope)| envelope) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::{CoreId, DatacenterId, LogicalTime};
    use ensue_wire::{Address, Message};

    #[test]
    fn a_message_waits_for_a_question_that_was_asked_after_it() {
        let core = Address::Core { datacenter: DatacenterId(0), core: CoreId(0) };
        let said = Envelope { from: core, to: core, time: LogicalTime(1), message: Message::AskTime };
        let mut gate = Gate::default();
        gate.hold(said.clone());
        assert_eq!(gate.next_question(), Some(1));
        gate.hold(said);
        assert_eq!(gate.next_question(), None, "one is under way");
        gate.on_answer(1);
        assert!(gate.next().is_some());
        assert!(gate.next().is_none(), "the second was said after the question");
        assert_eq!(gate.next_question(), Some(2));
        gate.on_answer(2);
        assert!(gate.next().is_some());
        assert_eq!(gate.next_question(), None);
    }
}
