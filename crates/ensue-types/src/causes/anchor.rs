//! What a session of a branching keyspace remembers: where it goes on from, and its own ways.
//!
//! ```text
//! open u8 | anchors u8 count, u64 each | begin u16 length, text | end u16 length, text | operations, as behind a 1
//! ```

use super::{Malformed, OPERATIONS, dependency_set};
use crate::Dependency;

/// A session that took over the pasts of more sessions than this goes on from the highest of them.
pub(super) const STATES_MAX: usize = 64;

/// What a session of a branching keyspace remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    /// A transaction is open.
    pub open: bool,
    /// Names of states, in their encoding; none is the root.
    pub states: Vec<u64>,
    /// The session's own default constraints as text; empty are those of the protocol.
    pub begin: Vec<u8>,
    pub end: Vec<u8>,
    /// The commits that made the states, so that another datacenter can wait for them.
    pub operations: Vec<Dependency>,
}

impl Anchor {
    pub(super) const ROOT: Anchor = Anchor {
        open: false,
        states: Vec::new(),
        begin: Vec::new(),
        end: Vec::new(),
        operations: Vec::new(),
    };

    /// Whether all the states of another past fit beside these. Which of them come from others only their owner knows.
    pub fn has_room_for(&self, other: &Anchor) -> bool {
        let more = other.states.iter().filter(|state| !self.states.contains(state));
        self.states.len() + more.count() <= STATES_MAX
    }

    /// Takes over another's past, but not its ways.
    pub fn take_over(&mut self, other: &Anchor) {
        self.states.extend_from_slice(&other.states);
        self.states.sort_unstable_by(|a, b| b.cmp(a));
        self.states.dedup();
        dependency_set::add(&mut self.operations, other.operations.iter().copied(), STATES_MAX);
    }

    pub(super) fn decode(mut from: &[u8]) -> Result<Anchor, Malformed> {
        let open = match byte(&mut from)? {
            0 => false,
            1 => true,
            _ => return Err(Malformed),
        };
        let count = usize::from(byte(&mut from)?);
        if count > STATES_MAX {
            return Err(Malformed);
        }
        let states = take(&mut from, 8 * count)?
            .chunks_exact(8)
            .map(|bits| u64::from_le_bytes(bits.try_into().expect("chunks of eight")));
        let states = states.collect();
        let begin = text(&mut from)?;
        let end = text(&mut from)?;
        let operations = match from.split_first() {
            None => Vec::new(),
            Some((&OPERATIONS, items)) if !items.is_empty() => dependency_set::decode(items)?,
            Some(_) => return Err(Malformed),
        };
        Ok(Anchor { open, states, begin, end, operations })
    }

    pub(super) fn encode_into(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.open));
        out.push(u8::try_from(self.states.len()).expect("there are at most so many in a past"));
        self.states.iter().for_each(|state| out.extend_from_slice(&state.to_le_bytes()));
        for text in [&self.begin, &self.end] {
            let length = u16::try_from(text.len()).expect("constraints are bounded when they are set");
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(text);
        }
        if !self.operations.is_empty() {
            out.push(OPERATIONS);
            dependency_set::encode_into(&self.operations, out);
        }
    }

    pub(super) fn encoded_bytes(&self) -> usize {
        let operations =
            usize::from(!self.operations.is_empty()) + dependency_set::encoded_bytes(&self.operations);
        1 + 1 + 8 * self.states.len() + 2 + self.begin.len() + 2 + self.end.len() + operations
    }
}

fn take<'a>(from: &mut &'a [u8], count: usize) -> Result<&'a [u8], Malformed> {
    let (taken, rest) = from.split_at_checked(count).ok_or(Malformed)?;
    *from = rest;
    Ok(taken)
}

fn byte(from: &mut &[u8]) -> Result<u8, Malformed> {
    Ok(take(from, 1)?[0])
}

fn text(from: &mut &[u8]) -> Result<Vec<u8>, Malformed> {
    let length = take(from, 2)?;
    let length = u16::from_le_bytes([length[0], length[1]]);
    Ok(take(from, usize::from(length))?.to_vec())
}
