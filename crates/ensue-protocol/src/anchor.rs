//! What a session of a branching keyspace remembers: where it goes on from, and its own ways.
//!
//! Its default constraints, and that a transaction of it is open, stay with the session when it takes over the past of
//! another.
//!
//! ```text
//! version u8 = 5 | open u8 | anchors u8 count, u64 each | begin u16 length, text | end u16 length, text | operations (dependency_set.rs)
//! ```

use crate::{Family, Malformed, Past, Visibility, dependency_set};
use ensue_types::{Dependency, Opaque, OperationId, Source};

const VERSION: u8 = 5;
/// A session that took over the pasts of more sessions than this goes on from the highest of them.
const ANCHORS_MAX: usize = 64;

/// The family of the branching keyspaces: states know themselves what they come from, so little is asked here.
#[derive(Clone, Copy, Debug)]
pub struct States;

impl Family for States {
    fn record_reads(&self, _context: &mut Opaque, _read: &[Source], _settled: &[Source]) {}

    fn record_write(&self, _context: &mut Opaque, _write: &Source) {}

    fn dependencies(&self, _context: &Opaque, _observed: &[Source]) -> Opaque {
        Opaque::default()
    }

    fn visibility(&self, _operation: OperationId, _dependencies: &Opaque) -> Result<Visibility, Malformed> {
        Ok(Visibility::Now)
    }

    fn merge(&self, context: &mut Opaque, other: &Opaque) -> Result<(), Malformed> {
        let mut own = Anchor::decode(context)?;
        let other = Anchor::decode(other)?;
        own.states.extend(other.states);
        own.states.sort_unstable_by(|a, b| b.cmp(a));
        own.states.dedup();
        dependency_set::add(&mut own.operations, other.operations, ANCHORS_MAX);
        *context = own.encode();
        Ok(())
    }

    fn past(&self, context: &Opaque) -> Result<Past, Malformed> {
        Ok(Past::Operations(Anchor::decode(context)?.operations))
    }
}

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
    pub fn decode(context: &Opaque) -> Result<Anchor, Malformed> {
        let mut from = &context.0[..];
        if from.is_empty() {
            return Ok(Anchor::default());
        }
        if byte(&mut from)? != VERSION {
            return Err(Malformed);
        }
        let open = match byte(&mut from)? {
            0 => false,
            1 => true,
            _ => return Err(Malformed),
        };
        let count = usize::from(byte(&mut from)?);
        let states = take(&mut from, 8 * count)?
            .chunks_exact(8)
            .map(|bits| u64::from_le_bytes(bits.try_into().expect("chunks of eight")));
        let states = states.collect();
        let begin = text(&mut from)?;
        let end = text(&mut from)?;
        let operations = dependency_set::decode(&Opaque(from.to_vec()))?;
        Ok(Anchor { open, states, begin, end, operations })
    }

    pub fn encode(&self) -> Opaque {
        if *self == Anchor::default() {
            return Opaque::default();
        }
        let mut out = vec![VERSION, u8::from(self.open)];
        let states = &self.states[..self.states.len().min(ANCHORS_MAX)];
        out.push(states.len() as u8);
        states.iter().for_each(|state| out.extend_from_slice(&state.to_le_bytes()));
        for text in [&self.begin, &self.end] {
            let length = u16::try_from(text.len()).expect("constraints are bounded when they are set");
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(text);
        }
        out.extend_from_slice(&dependency_set::encode(&self.operations).0);
        Opaque(out)
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

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::{DatacenterId, Extent, Incarnation, OperationId, PartitionId, Position};

    fn anchor(states: &[u64]) -> Anchor {
        let operation = OperationId {
            datacenter: DatacenterId(1),
            incarnation: Incarnation(1),
            partition: PartitionId(0),
            position: Position(states.len() as u64),
        };
        Anchor {
            states: states.to_vec(),
            operations: vec![Dependency { operation, extent: Extent::Exact }],
            ..Anchor::default()
        }
    }

    #[test]
    fn a_context_has_one_encoding() {
        let own = Anchor { open: true, begin: b"ANY".to_vec(), end: b"PARENT".to_vec(), ..anchor(&[7, 3]) };
        let bytes = own.encode();
        assert_eq!(Anchor::decode(&bytes), Ok(own));
        for end in 1..bytes.0.len() - 15 {
            assert_eq!(Anchor::decode(&Opaque(bytes.0[..end].to_vec())), Err(Malformed), "{end} bytes");
        }
        assert_eq!(Anchor::decode(&Opaque::default()), Ok(Anchor::default()));
    }

    #[test]
    fn another_past_is_taken_over_but_not_its_ways() {
        let mut own = Anchor { begin: b"ANY".to_vec(), states: vec![3], ..Anchor::default() }.encode();
        let other =
            Anchor { open: true, end: b"PARENT".to_vec(), states: vec![7, 3], ..Anchor::default() }.encode();
        States.merge(&mut own, &other).unwrap();
        let joined = Anchor::decode(&own).unwrap();
        assert_eq!((joined.open, &joined.begin[..], joined.end.len()), (false, &b"ANY"[..], 0));
        assert_eq!(joined.states, [7, 3]);
    }
}
