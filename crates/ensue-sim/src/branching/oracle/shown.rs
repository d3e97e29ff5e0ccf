//! Which states each datacenter has shown to somebody by when: it has them from then on, with all that comes before
//! them.
//!
//! A power failure under `everysec` or `no` may take what was not synced; then only what was shown before the last
//! sync, or after the failure, is certain.

use crate::branching::graph::{Graph, Place, States};
use crate::branching::id::StateId;
use crate::branching::tale::{Step, Tale};
use crate::oracle::history::{History, PowerLost};
use crate::resp::Answer;
use ensue_types::{DatacenterId, PartitionId};
use std::collections::BTreeMap;

/// A datacenter showed a state.
#[derive(Clone, Copy, Debug)]
struct Sight {
    asked_us: u64,
    answered_us: u64,
    place: Place,
}

/// What each datacenter had, from which time on.
#[derive(Debug, Default)]
pub struct Shown {
    lines: BTreeMap<DatacenterId, Vec<(u64, States)>>,
    sights: BTreeMap<DatacenterId, Vec<Sight>>,
}

impl Shown {
    pub fn collect(history: &History, tale: &Tale, graph: &Graph) -> Shown {
        let mut shown = Shown::default();
        for transaction in &tale.transactions {
            shown.see(graph, &transaction.began);
            transaction.ended.iter().for_each(|step| shown.see(graph, step));
        }
        tale.questions.iter().for_each(|question| shown.see(graph, &question.step));
        tale.anchors.iter().for_each(|(_, _, step)| {
            // The anchor of a session may be of elsewhere, and on its way.
            if step.name() != "BRANCH SESSION" {
                shown.see(graph, step);
            }
        });
        for (&datacenter, sights) in &mut shown.sights {
            sights.sort_by_key(|sight| sight.answered_us);
            let losses: Vec<&PowerLost> =
                history.power_losses.iter().filter(|loss| is_of(loss, datacenter)).collect();
            shown.lines.insert(datacenter, line(graph, sights, &losses));
        }
        shown
    }

    /// Everything that a datacenter surely has at a time; nothing if it has shown nothing.
    pub fn by(&self, datacenter: DatacenterId, at_us: u64) -> Option<&States> {
        let line = self.lines.get(&datacenter)?;
        let after = line.partition_point(|(from, _)| *from <= at_us);
        after.checked_sub(1).map(|at| &line[at].1)
    }

    /// Whether somebody saw a state, or one that comes after it, so that no power failure can have taken it.
    pub fn outlived(&self, history: &History, graph: &Graph, place: Place) -> bool {
        self.sights.iter().any(|(&datacenter, sights)| {
            sights.iter().any(|sight| {
                let took = |loss: &PowerLost| {
                    is_of(loss, datacenter)
                        && loss.since_us <= sight.answered_us
                        && sight.asked_us <= loss.at_us
                };
                graph.is_ancestor(place, sight.place) && !history.power_losses.iter().any(took)
            })
        })
    }

    fn see(&mut self, graph: &Graph, step: &Step) {
        let Some(answer) = step.done() else { return };
        let mut ids = Vec::new();
        match step.name().as_str() {
            "BRANCH BEGIN" | "BRANCH COMMIT" | "BRANCH MERGE" | "BRANCH LIST" => flat(answer, &mut ids),
            "BRANCH FORKPOINTS" | "BRANCH LOG" => {
                if let Answer::Array(lines) = answer {
                    for line in lines {
                        if let Answer::Array(parts) = line {
                            parts.first().into_iter().for_each(|id| flat(id, &mut ids));
                        }
                    }
                }
            }
            _ => {}
        }
        for id in ids {
            if let Some(place) = graph.place(id) {
                let sight = Sight { asked_us: step.asked_us, answered_us: step.answered_us, place };
                self.sights.entry(step.datacenter).or_default().push(sight);
            }
        }
    }
}

/// Branches are kept by the first partition.
fn is_of(loss: &PowerLost, datacenter: DatacenterId) -> bool {
    loss.datacenter == datacenter && loss.partition == PartitionId(0)
}

fn flat(answer: &Answer, ids: &mut Vec<StateId>) {
    match answer {
        Answer::Array(items) => items.iter().for_each(|item| flat(item, ids)),
        other => ids.extend(other.text().and_then(StateId::parse)),
    }
}

fn line(graph: &Graph, sights: &[Sight], losses: &[&PowerLost]) -> Vec<(u64, States)> {
    let mut line: Vec<(u64, States)> = Vec::new();
    let mut times: Vec<u64> = sights.iter().map(|sight| sight.answered_us).collect();
    times.extend(losses.iter().map(|loss| loss.at_us));
    times.sort_unstable();
    times.dedup();
    let mut next = 0;
    let mut has = graph.below(&[]);
    for at_us in times {
        let lost = losses.iter().any(|loss| loss.at_us == at_us);
        let took = |sight: &Sight| {
            losses.iter().any(|loss| {
                loss.at_us <= at_us && loss.since_us <= sight.answered_us && sight.asked_us <= loss.at_us
            })
        };
        let mut grew = lost;
        if lost {
            has = graph.below(&[]);
            let kept = sights[..next].iter().filter(|sight| !took(sight));
            kept.for_each(|sight| has.join(&graph.nodes[sight.place].ancestors));
        }
        while let Some(sight) = sights.get(next).filter(|sight| sight.answered_us <= at_us) {
            if !has.has(sight.place) && !took(sight) {
                has.join(&graph.nodes[sight.place].ancestors);
                grew = true;
            }
            next += 1;
        }
        if grew {
            line.push((at_us, has.clone()));
        }
    }
    line
}
