//! Which lane each state stands in, and how lanes run between states. Pure: states in, rows out, for text and picture.
//!
//! On a state, from the newest down: it stands in the lane that waits for it, or in a new one at the right if it is a
//! leaf. Each of its parents is then waited for by exactly one lane: the one that waits for it already, else the
//! state's own lane, else a new one. A state whose only parent is waited for further right pulls that lane to itself,
//! so that the oldest line drifts left. Where a lane ends, those right of it close the gap.

use super::state::{State, StateId};

/// A row for each state, in the order of the states.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub rows: Vec<Row>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The lane of the state.
    pub lane: usize,
    pub colour: usize,
    /// What runs from this row to the next.
    pub strands: Vec<Strand>,
}

/// A line from a lane in this row to one in the next. Of several that end in one lane, one goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strand {
    pub from: usize,
    pub to: usize,
    /// One for each lane that was begun, counted up.
    pub colour: usize,
}

/// A line that runs down to this state.
#[derive(Clone, Copy, Debug)]
struct Lane {
    awaits: StateId,
    colour: usize,
}

impl Layout {
    pub(super) fn of(states: &[State]) -> Layout {
        let mut lanes = Lanes::default();
        Layout { rows: states.iter().map(|state| lanes.place(state)).collect() }
    }

    /// Lanes needed for all rows.
    pub(super) fn width(&self) -> usize {
        let strands = self.rows.iter().flat_map(|row| &row.strands).map(|strand| strand.to.max(strand.from));
        strands.chain(self.rows.iter().map(|row| row.lane)).max().map_or(0, |last| last + 1)
    }
}

/// From left to right, without gaps. No two wait for the same state.
#[derive(Default)]
struct Lanes {
    lanes: Vec<Lane>,
    colours: usize,
}

impl Lanes {
    fn place(&mut self, state: &State) -> Row {
        let own = self.waiting_for(state.id).unwrap_or_else(|| self.begin(state.id));
        let colour = self.lanes[own].colour;
        let others = self.lanes.iter().enumerate().filter(|&(at, _)| at != own);
        let mut strands: Vec<Strand> =
            others.map(|(at, lane)| Strand { from: at, to: at, colour: lane.colour }).collect();
        let mut goes_on = false;
        for &parent in &state.parents {
            let to = match self.waiting_for(parent) {
                Some(lane) => lane,
                None if goes_on => self.begin(parent),
                None => {
                    goes_on = true;
                    self.lanes[own].awaits = parent;
                    own
                }
            };
            let colour = if to > own { self.lanes[to].colour } else { colour };
            strands.push(Strand { from: own, to, colour });
        }
        if !goes_on {
            let freed = self.pull(state, own, &mut strands).unwrap_or(own);
            self.close(freed, &mut strands);
        }
        Row { lane: own, colour, strands }
    }

    /// The only parent's lane, if it lies further right, comes here; which lane that leaves free.
    fn pull(&mut self, state: &State, own: usize, strands: &mut [Strand]) -> Option<usize> {
        let [parent] = state.parents[..] else { return None };
        let right = self.waiting_for(parent).filter(|&lane| lane > own)?;
        self.lanes[own].awaits = self.lanes[right].awaits;
        for strand in strands.iter_mut().filter(|strand| strand.to == right) {
            strand.to = own;
            if strand.from == own {
                strand.colour = self.lanes[own].colour;
            }
        }
        Some(right)
    }

    /// Ends a lane: what lies right of it moves to the left.
    fn close(&mut self, freed: usize, strands: &mut [Strand]) {
        self.lanes.remove(freed);
        for strand in strands.iter_mut().filter(|strand| strand.to > freed) {
            strand.to -= 1;
        }
    }

    fn waiting_for(&self, id: StateId) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.awaits == id)
    }

    fn begin(&mut self, awaits: StateId) -> usize {
        self.lanes.push(Lane { awaits, colour: self.colours });
        self.colours += 1;
        self.lanes.len() - 1
    }
}

#[cfg(test)]
mod tests;
