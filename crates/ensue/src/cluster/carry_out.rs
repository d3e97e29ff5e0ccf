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
        let (mut known, mut since) = (None, Instant::now());
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
                    show(reached.0.clone());
                    reached
                }
                Ok(Err(words)) if is_passing(&words) => {
                    wished = None;
                    (words, 0)
                }
                Ok(Err(words)) => bail!("partition {}: {words}", step.partition),
                // The node that is asked may be starting again.
                Err(error) => (format!("{error:#}"), 0),
            };
            if known.as_ref() != Some(&said) {
                (known, since) = (Some(said.clone()), Instant::now());
            }
            if since.elapsed() > PATIENCE {
                bail!(
                    "partition {}: nothing happens for {} s: {}",
                    step.partition,
                    PATIENCE.as_secs(),
                    said.0
                );
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// How far a move is, in words, and the last entry that the new replica has.
fn reached(group: &Group, step: Move) -> (String, u64) {
    let partition = group.partition;
    match group.member(step.to) {
        None => (format!("partition {partition}: node {} is asked to take a replica", step.to), 0),
        Some(member) if member.votes => (format!("partition {partition}: the members change"), member.has),
        Some(member) if member.has == 0 => {
            (format!("partition {partition}: node {} is sent the directory", step.to), 0)
        }
        Some(member) => {
            let behind = group.committed.saturating_sub(member.has);
            (format!("partition {partition}: node {} is {behind} entries behind", step.to), member.has)
        }
    }
}
