//! Operators who declare a datacenter dead, or have it removed, as one must: they look at what is known of it, and
//! confirm that. And those who have a replica moved: they ask for it until it has.
//!
//! Nobody waits for them. What is refused, since a link is not known to be down yet or something came meanwhile, they
//! try again, a bounded
//! number of times: whoever did not hear of it is told by the others, or when everything is healed.

use super::World;
use crate::resp::{Answer, Answers};
use crate::world::event::{Alarm, ConnectionId};
use crate::world::options::HOME_KEYSPACE;
use crate::world::shape::Site;
use ensue_types::{Args, CoreId, DatacenterId, PartitionId};

/// How often one that is refused looks again.
const TRIES: u32 = 50;

/// How often one asks for a move, and how long he waits before he asks again.
const WISHES: u32 = 60;
const WISH_US: u64 = 100_000;

/// What one wants.
#[derive(Clone, Copy, Debug)]
enum Task {
    Declare(DatacenterId),
    Remove(DatacenterId),
    Move { partition: PartitionId, from: CoreId, to: CoreId },
    MoveHome { to: DatacenterId, has_selected: bool },
}

/// One at work.
#[derive(Debug)]
pub(super) struct Operator {
    task: Task,
    answers: Answers,
    tries: u32,
}

impl World {
    /// An operator at this core begins to declare a datacenter dead.
    pub(super) fn operate(&mut self, site: Site, datacenter: DatacenterId) {
        let connection = self.connect(site);
        let task = Task::Declare(datacenter);
        self.operators.insert(connection, Operator { task, answers: Answers::default(), tries: 0 });
        self.send(connection, vec![look(datacenter)]);
    }

    /// An operator at this core begins to have its datacenter removed.
    pub(super) fn operate_removal(&mut self, site: Site, datacenter: DatacenterId) {
        let connection = self.connect(site);
        let task = Task::Remove(datacenter);
        self.operators.insert(connection, Operator { task, answers: Answers::default(), tries: 0 });
        self.ask_again(connection);
    }

    /// An operator at this core begins to ask for a move of a replica.
    pub fn have_moved(&mut self, site: Site, partition: PartitionId, from: CoreId, to: CoreId) {
        let connection = self.connect(site);
        let task = Task::Move { partition, from, to };
        self.operators.insert(connection, Operator { task, answers: Answers::default(), tries: 0 });
        self.ask_again(connection);
    }

    /// An operator in each datacenter begins to ask for the home of keys to move there.
    pub fn have_home_moved(&mut self, to: DatacenterId) {
        for datacenter in self.survivors() {
            let connection = self.connect(self.options.shape.site(datacenter, CoreId(0)));
            let task = Task::MoveHome { to, has_selected: false };
            self.operators.insert(connection, Operator { task, answers: Answers::default(), tries: 0 });
            let select = crate::resp::args(&format!("SELECT {}", HOME_KEYSPACE));
            self.send(connection, vec![select, move_home(to)]);
        }
    }

    /// The operator of a connection asks for a move, or a removal, once more.
    pub fn ask_again(&mut self, connection: ConnectionId) {
        let Some(operator) = self.operators.get(&connection) else { return };
        let command = match operator.task {
            Task::Move { partition, from, to } => {
                crate::resp::args(&format!("CAUSAL MOVE {} {} {}", partition.0, from.0, to.0))
            }
            Task::Remove(datacenter) => look_at_removal(datacenter),
            Task::MoveHome { to, .. } => move_home(to),
            Task::Declare(_) => return,
        };
        self.send(connection, vec![command]);
    }

    /// An answer to an operator; says whether it was one.
    pub(super) fn operator_hears(&mut self, connection: ConnectionId, bytes: &[u8]) -> bool {
        let Some(operator) = self.operators.get_mut(&connection) else { return false };
        operator.answers.extend(bytes);
        while let Some(operator) = self.operators.get_mut(&connection) {
            let Ok(Some(answer)) = operator.answers.pop() else { break };
            let datacenter = match operator.task {
                Task::Declare(datacenter) => datacenter,
                Task::Remove(datacenter) => {
                    operator.tries += 1;
                    let is_over = operator.tries > WISHES || self.is_healed;
                    match confirm_removal(datacenter, &answer) {
                        Some(confirm) => self.send(connection, vec![confirm]),
                        None if answer.error().is_some() && !is_over => {
                            self.alarm(self.now + WISH_US, Alarm::Ask(connection));
                        }
                        None => {
                            self.operators.remove(&connection);
                            self.close(connection);
                        }
                    }
                    continue;
                }
                Task::MoveHome { to, has_selected: false } => {
                    operator.task = Task::MoveHome { to, has_selected: true };
                    continue;
                }
                Task::MoveHome { .. } if answer == Answer::Status("OK".into()) => {
                    self.operators.remove(&connection);
                    self.close(connection);
                    continue;
                }
                Task::MoveHome { .. } | Task::Move { .. } => {
                    operator.tries += 1;
                    // Where it makes no sense, he hears that, and that it has come true is nothing to him.
                    let refused = answer.error().is_some_and(|words| words.starts_with("ERR"));
                    if refused || operator.tries > WISHES || self.is_healed {
                        self.operators.remove(&connection);
                        self.close(connection);
                    } else {
                        self.alarm(self.now + WISH_US, Alarm::Ask(connection));
                    }
                    continue;
                }
            };
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

/// What has the home of keys moved.
fn move_home(to: DatacenterId) -> Args {
    crate::resp::args(&format!("CAUSAL HOME home:* {to}"))
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

/// What shows whether a datacenter can be removed.
pub(crate) fn look_at_removal(datacenter: DatacenterId) -> Args {
    crate::resp::args(&format!("CAUSAL RETIRE {datacenter}"))
}

/// What confirms that it shall be, if the answer shows how.
pub(crate) fn confirm_removal(datacenter: DatacenterId, shown: &Answer) -> Option<Args> {
    let Answer::Array(lines) = shown else { return None };
    let [digest, _, _] = &lines[..] else { return None };
    Some(crate::resp::args(&format!("CAUSAL RETIRE {datacenter} CONFIRM {}", digest.text()?)))
}
