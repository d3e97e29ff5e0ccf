//! The end of the keys with a home: every datacenter has the same of them, and what is left in their queues is judged.
//!
//! All this is asked when everything else was, so that the hashes of a run do not tell of it.

use super::Run;
use super::settle::{LOOK_AGAIN_US, SETTLE_US_MAX};
use crate::oracle::{Violation, property};
use crate::resp::args;
use crate::workload::Workload;

impl Run {
    /// Waits until those are answered who asked a home, if anybody did, and compares the datacenters.
    pub(super) fn settle_homes(&mut self, workload: &mut Workload) -> Result<(), Violation> {
        let Some(digest) = workload.digest_of_homes() else { return Ok(()) };
        let deadline = self.world.now() + SETTLE_US_MAX;
        loop {
            let mut digests = Vec::new();
            for datacenter in self.world.survivors() {
                let answers = self.ask(workload, datacenter, vec![args(&digest)])??;
                digests.push(answers[0].to_string());
            }
            let is_answered = workload.queue_questions(&self.world).is_some();
            if is_answered && digests.iter().all(|digest| *digest == digests[0]) {
                return self.judge_queues(workload);
            }
            if self.world.now() > deadline {
                let words = format!("digests of the keys with a home: {}", digests.join(" | "));
                return Err(match is_answered {
                    true => Violation::new(property::CONVERGENCE, words),
                    false => {
                        Violation::new(property::PROGRESS, "a command on a key with a home has no answer")
                    }
                });
            }
            self.idle(workload, LOOK_AGAIN_US)?;
        }
    }

    /// Once more, if somebody still waited when all datacenters were read.
    fn judge_queues(&mut self, workload: &mut Workload) -> Result<(), Violation> {
        if workload.has_noted_queues() {
            return Ok(());
        }
        self.note_queues(workload)?;
        workload.judge_homes(&self.world)
    }

    /// What is left in the queues, if nobody waits for an answer.
    pub(super) fn note_queues(&mut self, workload: &mut Workload) -> Result<(), Violation> {
        let Some((home, questions)) = workload.queue_questions(&self.world) else { return Ok(()) };
        let answers = self.ask(workload, home, questions)??;
        if let Some(error) = answers.iter().find(|answer| answer.error().is_some()) {
            let words = format!("{home} answers {error} to who asks for its queues when all is done");
            return Err(Violation::new(property::AVAILABILITY, words));
        }
        workload.note_queues(&answers);
        Ok(())
    }
}
