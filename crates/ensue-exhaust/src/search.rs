//! Depth first through all states, each once, and the verdict on every complete execution.
//!
//! Beside the states it counts the executions: the ways from the beginning to an end, which are many more.

use super::case::Case;
use super::print::Print;
use super::state::{Choice, Setting, State};
use super::verdict::{idle, judge_end, program};
use ensue_sim::oracle::{Violation, property};
use ensue_sim::rules::Rules;
use ensue_sim::run::caught;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use std::rc::Rc;

/// After the first writes, so that everything is known and synced everywhere.
const BEFORE_US: u64 = 3_000_000;

/// Choices between two tellings.
const TELL_EVERY: u64 = 20_000;

/// What was visited, and what was found.
#[derive(Clone, Debug, Default)]
pub struct Census {
    pub states: u64,
    /// Choices taken.
    pub transitions: u64,
    /// States in which nothing more happens by itself, each judged.
    pub ends: u64,
    /// Different orders of events from the beginning to an end.
    pub executions: f64,
    /// Choices in the longest execution.
    pub depth: usize,
    /// No state was left out.
    pub complete: bool,
    pub found: Option<Found>,
}

/// A violation and the choices that led to it.
#[derive(Clone, Debug)]
pub struct Found {
    pub violation: Violation,
    pub steps: Vec<String>,
}

struct Frame {
    state: State,
    print: Print,
    choices: Vec<Choice>,
    taken: usize,
    executions: f64,
}

/// A state that has been visited; while it is on the present path its executions are not known.
type Visited = HashMap<Print, Option<f64>, FixedState>;

struct Search {
    visited: Visited,
    path: Vec<Frame>,
    clients: usize,
    census: Census,
}

/// Visits every state of a case, or so many; ends at the first violation. Tells now and then how far it has come.
pub fn explore(case: &Case, rules: Rules, states_max: u64, tell: &mut dyn FnMut(&Census)) -> Census {
    let _breaking = rules.enter();
    let clients = 1 + case.clients.len();
    let mut search =
        Search { visited: Visited::default(), path: Vec::new(), clients, census: Census::default() };
    let verdict = guarded(|| begin(case, rules)).and_then(|state| search.enter(state));
    let verdict = verdict.and_then(|()| search.run(states_max, tell));
    if let Err(violation) = verdict {
        let steps = search.steps();
        search.census.found = Some(Found { violation, steps });
    }
    search.census
}

/// The state in which everything is started and what was said before is known everywhere.
fn begin(case: &Case, rules: Rules) -> Result<State, Violation> {
    let mut state = State::new(Rc::new(Setting::new(*case, rules)))?;
    idle(&mut state, BEFORE_US)?;
    state.connect(0, 0, program(0, case.before))?;
    idle(&mut state, BEFORE_US)?;
    for (number, speaker) in case.clients.iter().enumerate() {
        state.connect(speaker.datacenter, speaker.core, program(number + 1, speaker.says))?;
    }
    let left = state.steps();
    assert!(left.is_empty(), "the world is not at rest: {left:?}");
    state.unleash();
    Ok(state)
}

impl Search {
    fn run(&mut self, states_max: u64, tell: &mut dyn FnMut(&Census)) -> Result<(), Violation> {
        while let Some(frame) = self.path.last_mut() {
            let Some(&choice) = frame.choices.get(frame.taken) else {
                self.leave();
                continue;
            };
            frame.taken += 1;
            let mut state = frame.state.clone();
            self.census.transitions += 1;
            if self.census.transitions % TELL_EVERY == 0 {
                tell(&self.census);
            }
            guarded(|| state.take(choice))?;
            if self.census.states >= states_max {
                return Ok(());
            }
            self.enter(state)?;
        }
        self.census.complete = true;
        Ok(())
    }

    /// Goes into a state, if it is new.
    fn enter(&mut self, state: State) -> Result<(), Violation> {
        let print = state.print();
        match self.visited.get(&print) {
            Some(Some(executions)) => {
                let executions = *executions;
                self.add_executions(executions);
                return Ok(());
            }
            Some(None) => {
                return Err(Violation::new(
                    property::PROGRESS,
                    "this state has been before: it may go on for ever",
                ));
            }
            None => {}
        }
        self.visited.insert(print, None);
        self.census.states += 1;
        self.census.depth = self.census.depth.max(self.path.len());
        let choices = state.choices();
        let ends = state.steps().is_empty() && state.says().next().is_none();
        let executions = if ends { 1.0 } else { 0.0 };
        let verdict = if ends { guarded(|| judge_end(&state, self.clients)) } else { Ok(()) };
        self.census.ends += u64::from(ends);
        self.path.push(Frame { state, print, choices, taken: 0, executions });
        verdict
    }

    fn leave(&mut self) {
        if let Some(frame) = self.path.pop() {
            self.visited.insert(frame.print, Some(frame.executions));
            self.add_executions(frame.executions);
        }
    }

    fn add_executions(&mut self, executions: f64) {
        match self.path.last_mut() {
            Some(frame) => frame.executions += executions,
            None => self.census.executions = executions,
        }
    }

    /// The present path in words, and what clients have been answered at its end.
    fn steps(&self) -> Vec<String> {
        let taken = self.path.iter().filter(|frame| frame.taken > 0);
        let mut steps: Vec<String> =
            taken.map(|frame| frame.state.describe(frame.choices[frame.taken - 1])).collect();
        if let Some(last) = self.path.last() {
            for client in &last.state.clients[..self.clients.min(last.state.clients.len())] {
                let answers: Vec<String> = client.answers.iter().map(ToString::to_string).collect();
                steps.push(format!("client {} has heard {}", client.session.0, answers.join(", ")));
            }
        }
        steps
    }
}

/// A broken invariant of a node is a violation like any other.
fn guarded<T>(work: impl FnOnce() -> Result<T, Violation>) -> Result<T, Violation> {
    caught(work).unwrap_or_else(|words| Err(Violation::new(property::PANIC, words)))
}
