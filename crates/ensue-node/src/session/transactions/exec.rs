//! EXEC of commands of which some can be no part of a transaction: what it comes to, step by step.
//!
//! - The commands on keys are one step, as those of any MULTI are.
//! - Every other one is a step of its own: before that one if it stands before the first command on keys, else after
//!   it, in their order. Where keys are watched, which is asked with the first step, all others come after it.
//! - One that writes and stands between commands on keys would have to split what is atomic: nothing is executed.
//! - Keys with a home elsewhere are used there; what is published follows, in the datacenter of the client, when what
//!   happened at the home is visible there.
//! - If a step comes to no answers, later ones are not executed. The answer is the step's error if it was the first
//!   one, and otherwise stands at the place of each command that was not executed.

use super::multi;
use crate::homes::is_check;
use crate::session::plan::Plan;
use ensue_types::{Args, DatacenterId, Reply};
use std::collections::VecDeque;

/// An EXEC that is being executed.
#[derive(Clone, Debug)]
pub(crate) struct Exec {
    steps: VecDeque<(Vec<usize>, Step)>,
    /// Of the commands of the present step, among all.
    places: Vec<usize>,
    together: bool,
    replies: Vec<Reply>,
    /// A step has ended with its answers.
    begun: bool,
    /// The first step has come to this.
    refused: Option<Reply>,
}

/// What is executed at once.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Together(Box<Plan>),
    /// The commands on keys, at the home of their keys.
    AtHome(DatacenterId, Vec<Args>),
    Alone(Args),
}

impl Exec {
    /// Steps in their order, each with the places of its commands. The answers that are known before have theirs.
    pub(crate) fn new(steps: VecDeque<(Vec<usize>, Step)>, replies: Vec<Reply>) -> Exec {
        Exec { steps, places: Vec::new(), together: false, replies, begun: false, refused: None }
    }

    /// Commands that are executed at a home, and, with its place among all, each of those that follow here.
    pub(crate) fn at_home(home: DatacenterId, commands: Vec<Args>, following: Vec<(usize, Args)>) -> Exec {
        let count = commands.iter().filter(|args| !is_check(args)).count() + following.len();
        let places = (0..count).filter(|place| following.iter().all(|(other, _)| other != place)).collect();
        let mut steps = VecDeque::from([(places, Step::AtHome(home, commands))]);
        steps.extend(following.into_iter().map(|(place, args)| (vec![place], Step::Alone(args))));
        Exec::new(steps, vec![Reply::Nil; count])
    }

    /// The present step has to wait: it is the next one again.
    pub(crate) fn put_off(&mut self, step: Step) {
        self.steps.push_front((self.places.clone(), step));
    }

    /// Whether no step is left.
    pub(crate) fn is_over(&self) -> bool {
        self.steps.is_empty()
    }

    /// The next step; nothing at the end.
    pub(crate) fn next(&mut self) -> Option<Step> {
        let (places, step) = self.steps.pop_front()?;
        self.places = places;
        self.together = !matches!(step, Step::Alone(_));
        Some(step)
    }

    /// What the present step has been answered.
    pub(crate) fn put(&mut self, reply: Reply) {
        let replies = match (self.together, reply) {
            // A watched key has changed.
            (true, Reply::NilArray) => return self.stop(Reply::NilArray),
            (false, reply) => vec![reply],
            (true, Reply::Array(replies)) if replies.len() == self.places.len() => replies,
            (true, reply) => return self.stop(reply),
        };
        for (place, reply) in self.places.iter().zip(replies) {
            self.replies[*place] = reply;
        }
        self.begun = true;
    }

    /// The present step has come to no answers.
    pub(crate) fn stop(&mut self, reply: Reply) {
        if !self.begun {
            self.steps.clear();
            self.refused = Some(multi::aborted_by(reply));
            return;
        }
        for place in self.steps.drain(..).flat_map(|(places, _)| places) {
            self.replies[place] = NOT_EXECUTED;
        }
        // One that was put off is among the others, too.
        for place in &self.places {
            self.replies[*place] = reply.clone();
        }
    }

    /// The answer, when no step is left.
    pub(crate) fn into_reply(self) -> Reply {
        self.refused.unwrap_or(Reply::Array(self.replies))
    }
}

const NOT_EXECUTED: Reply =
    Reply::error("EXECABORT this command was not executed: an earlier step of its transaction has failed");
