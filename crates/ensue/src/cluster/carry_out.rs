//! Has replicas move, one after the other, and shows how far that is.

use super::Asking;
use super::group::{Group, is_passing};
use super::plan::{Move, Plan};
use crate::import::{Progress, Stop};
use crate::paint::Paint;
use anyhow::bail;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A wish is repeated so often; it lasts for five seconds.
const AGAIN: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(200);
/// Nothing comes of a move for so long: it is given up.
const PATIENCE: Duration = Duration::from_secs(120);
const INTERRUPTED: u8 = 3;

pub(super) struct Mover<'a, 'b> {
    pub(super) asking: &'a mut Asking<'b>,
    pub(super) stop: &'a Stop,
}

/// What came of one move.
enum Ended {
    Done,
    Interrupted,
}

impl Mover<'_, '_> {
    pub(super) fn carry_out(mut self, plan: &Plan) -> anyhow::Result<ExitCode> {
        let mut progress = Progress::new();
        let count = plan.moves.len();
        for (done, step) in plan.moves.iter().enumerate() {
            let ended = self.have_moved(*step, &mut |text| {
                progress.show(done as u64, Some(count as u64), || format!("{done} of {count}: {text}"));
            });
            progress.clear();
            match ended {
                Ok(Ended::Done) => {
                    let Move { partition, from, to } = step;
                    println!("partition {partition}: node {from} -> node {to}");
                }
                Ok(Ended::Interrupted) => {
                    println!(
                        "interrupted: {done} of {count} replicas have moved; the one under way may still"
                    );
                    return Ok(ExitCode::from(INTERRUPTED));
                }
                Err(error) => {
                    bail!("{error:#}; {done} of {count} replicas have moved: the same command goes on")
                }
            }
        }
        println!("{}", Paint::for_stdout().good("done"));
        Ok(ExitCode::SUCCESS)
    }

    fn have_moved(&mut self, step: Move, show: &mut dyn FnMut(String)) -> anyhow::Result<Ended> {
        let numbers = [step.partition, step.from, step.to].map(|number| number.to_string());
        let wish = ["CAUSAL", "MOVE", &numbers[0], &numbers[1], &numbers[2]];
        let look = ["CAUSAL", "REPLICAS", &numbers[0]];
        let mut patience = Patience::new(Instant::now());
        let mut wished: Option<Instant> = None;
        loop {
            if self.stop.is_asked() {
                return Ok(Ended::Interrupted);
            }
            // Each wish stands in the audit log; in between it is enough to look.
            let asks = wished.is_none_or(|at| at.elapsed() > AGAIN);
            let said = match self.asking.call(if asks { &wish[..] } else { &look[..] }) {
                Ok(Ok(text)) => {
                    let group = Group::read(&text)?;
                    if asks {
                        wished = Some(Instant::now());
                    }
                    if group.votes(step.to) && !group.votes(step.from) && !group.changes {
                        return Ok(Ended::Done);
                    }
                    let reached = reached(&group, step);
                    show(reached.words.clone());
                    reached
                }
                Ok(Err(words)) if is_passing(&words) => {
                    wished = None;
                    Reached { words, has: 0, copies: false }
                }
                Ok(Err(words)) => bail!("partition {}: {words}", step.partition),
                // The node that is asked may be starting again.
                Err(error) => Reached { words: format!("{error:#}"), has: 0, copies: false },
            };
            if patience.ends(&said, Instant::now()) {
                bail!(
                    "partition {}: nothing happens for {} s: {}",
                    step.partition,
                    PATIENCE.as_secs(),
                    said.words
                );
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// How far a move is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reached {
    words: String,
    /// The last entry that the new replica has.
    has: u64,
    /// It is heard, and is sent the directory: how much of that it has, nobody tells.
    copies: bool,
}

/// Since when nothing new has come of a move.
struct Patience {
    known: Option<Reached>,
    since: Instant,
}

impl Patience {
    fn new(now: Instant) -> Patience {
        Patience { known: None, since: now }
    }

    /// Whether a move is given up. A copy takes as long as it takes, and is thrown away if nobody asks for it any more.
    fn ends(&mut self, reached: &Reached, now: Instant) -> bool {
        if reached.copies || self.known.as_ref() != Some(reached) {
            (self.known, self.since) = (Some(reached.clone()), now);
        }
        now.duration_since(self.since) > PATIENCE
    }
}

fn reached(group: &Group, step: Move) -> Reached {
    let (partition, to) = (group.partition, step.to);
    let (words, has, copies) = match group.member(to) {
        None => (format!("node {to} is asked to take a replica"), 0, false),
        Some(member) if member.votes => ("the members change".to_owned(), member.has, false),
        Some(member) if member.has == 0 => (format!("node {to} is sent the directory"), 0, member.is_heard),
        Some(member) => {
            let behind = group.committed.saturating_sub(member.has);
            (format!("node {to} is {behind} entries behind"), member.has, false)
        }
    };
    Reached { words: format!("partition {partition}: {words}"), has, copies }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(learner: &str) -> Group {
        let text = format!(
            "partition:3\r\nowner:0\r\nterm:2\r\ncommitted:90\r\nchanging:no\r\nreached:0,1,2,3\r\n\
             node0:core=0,vote=yes,heard=yes,has=90\r\n{learner}\r\n"
        );
        Group::read(&text).expect("a group")
    }

    /// Whether the command gives up within so many seconds in which it hears the same.
    fn gives_up(learner: &str, seconds: u64) -> bool {
        let (start, step) = (Instant::now(), Move { partition: 3, from: 0, to: 3 });
        let mut patience = Patience::new(start);
        (0..=seconds)
            .any(|second| patience.ends(&reached(&group(learner), step), start + Duration::from_secs(second)))
    }

    #[test]
    fn a_copy_may_take_long_as_long_as_its_replica_is_heard() {
        assert!(!gives_up("node3:core=3,vote=no,heard=yes,has=0", 1_000));
        assert!(gives_up("node3:core=3,vote=no,heard=no,has=0", 130));
        assert!(gives_up("node3:core=3,vote=no,heard=yes,has=41", 130));
        assert!(gives_up("node2:core=2,vote=yes,heard=yes,has=90", 130), "it is asked to take one");
        assert!(!gives_up("node3:core=3,vote=no,heard=no,has=0", 110));
    }
}
