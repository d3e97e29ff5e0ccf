//! Operators who declare a datacenter dead as one must: they look at what is known of it, and confirm that.
//!
//! Nobody waits for them. What is refused, since a link is not known to be down yet or something came meanwhile, they
//! try again, a bounded
//! number of times: whoever did not hear of it is told by the others, or when everything is healed.

use super::World;
use crate::resp::{Answer, Answers};
use crate::world::event::ConnectionId;
use crate::world::shape::Site;
use ensue_types::{Args, DatacenterId};

/// How often one that is refused looks again.
const TRIES: u32 = 50;

/// One at work.
#[derive(Debug)]
pub(super) struct Operator {
    datacenter: DatacenterId,
    answers: Answers,
    tries: u32,
}

impl World {
    /// An operator at this core begins to declare a datacenter dead.
    pub(super) fn operate(&mut self, site: Site, datacenter: DatacenterId) {
        let connection = self.connect(site);
        let operator = Operator { datacenter, answers: Answers::default(), tries: 0 };
        self.operators.insert(connection, operator);
        self.send(connection, vec![look(datacenter)]);
    }

    /// An answer to an operator; says whether it was one.
    pub(super) fn operator_hears(&mut self, connection: ConnectionId, bytes: &[u8]) -> bool {
        let Some(operator) = self.operators.get_mut(&connection) else { return false };
        operator.answers.extend(bytes);
        while let Some(operator) = self.operators.get_mut(&connection) {
            let Ok(Some(answer)) = operator.answers.pop() else { break };
            let datacenter = operator.datacenter;
            operator.tries += u32::from(answer.error().is_some());
            let is_over = operator.tries > TRIES;
            let next = match confirm(datacenter, &answer, false) {
                Some(confirm) => Some(confirm),
                None => answer.error().filter(|_| !is_over).map(|_| look(datacenter)),
            };
            match next {
                Some(command) => self.send(connection, vec![command]),
                None => {
                    self.operators.remove(&connection);
                    self.close(connection);
                }
            }
        }
        true
    }
}

/// What shows what is known of a datacenter.
pub(crate) fn look(datacenter: DatacenterId) -> Args {
    crate::resp::args(&format!("CAUSAL DEAD {datacenter}"))
}

/// What confirms what was shown, if the answer shows something.
pub(crate) fn confirm(datacenter: DatacenterId, shown: &Answer, force: bool) -> Option<Args> {
    let Answer::Array(lines) = shown else { return None };
    let digest = lines.first()?.text()?;
    let force = if force { " FORCE" } else { "" };
    Some(crate::resp::args(&format!("CAUSAL DEAD {datacenter} CONFIRM {digest}{force}")))
}
