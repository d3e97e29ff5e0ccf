//! What a session, or a write, may depend on: a value of the family in which its protocol remembers.
//!
//! Within a node it is a value. It has bytes where it leaves a node or a process: in messages, in the log and in
//! tokens. Their first byte names the family, and nothing has none:
//!
//! ```text
//! 1 operations, or elements of a matrix: dependency_set.rs    6 all operations, the nearest apart: lists.rs
//! 2 times: vector.rs                                          5 states of a graph: anchor.rs
//! 3 time u64, and elements of a matrix as behind a 1          64 and above: a layout of another crate's own
//! ```
//!
//! Each value has one encoding: decoding refuses what no encoding makes, and never panics.

mod anchor;
pub mod dependency_set;
mod lists;
mod runs;
mod vector;

pub use anchor::Anchor;
pub use lists::Lists;
pub use runs::{OperationRun, OperationRuns};
pub use vector::{Mode, Vector};

use crate::{Dependency, LogicalTime, Opaque};
use std::hash::{Hash, Hasher};

/// The bytes of a context or of dependencies are of no layout, or the value is of another family than its protocol's:
/// a broken or foreign peer, or a forged token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

const OPERATIONS: u8 = 1;
const TIMES: u8 = 2;
const TIMED_MATRIX: u8 = 3;
/// 4 was another layout of it.
const LISTS: u8 = 6;
const STATES: u8 = 5;
/// The lowest first byte of a layout that this crate does not know.
pub const EXTENSION: u8 = 64;

const TIME_BYTES: usize = 8;

/// See the module. What is remembered of an empty past is `Nothing` in every family: the others come about by `From`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Causes {
    #[default]
    Nothing,
    /// Operations, or the elements of a matrix, which count all updates of a replica.
    Operations(Vec<Dependency>),
    Times(Box<Vector>),
    TimedMatrix(Box<TimedMatrix>),
    Lists(Box<Lists>),
    States(Box<Anchor>),
    /// The layout of a family that is none of these. Its first byte is `EXTENSION` or above.
    Extension(Opaque),
}

/// The elements of a matrix, and the highest update time that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimedMatrix {
    pub time: LogicalTime,
    pub elements: Vec<Dependency>,
}

static NO_TIMES: Vector = Vector::NOTHING;
static NO_MATRIX: TimedMatrix = TimedMatrix { time: LogicalTime::ZERO, elements: Vec::new() };
static NO_LISTS: Lists = Lists { nearest: Vec::new(), others: OperationRuns::NONE };
static NO_STATES: Anchor = Anchor::ROOT;

impl Causes {
    pub fn is_empty(&self) -> bool {
        *self == Causes::Nothing
    }

    pub fn operations(&self) -> Result<&[Dependency], Malformed> {
        match self {
            Causes::Nothing => Ok(&[]),
            Causes::Operations(set) => Ok(set),
            _ => Err(Malformed),
        }
    }

    pub fn times(&self) -> Result<&Vector, Malformed> {
        match self {
            Causes::Nothing => Ok(&NO_TIMES),
            Causes::Times(vector) => Ok(vector),
            _ => Err(Malformed),
        }
    }

    pub fn timed_matrix(&self) -> Result<&TimedMatrix, Malformed> {
        match self {
            Causes::Nothing => Ok(&NO_MATRIX),
            Causes::TimedMatrix(matrix) => Ok(matrix),
            _ => Err(Malformed),
        }
    }

    pub fn lists(&self) -> Result<&Lists, Malformed> {
        match self {
            Causes::Nothing => Ok(&NO_LISTS),
            Causes::Lists(lists) => Ok(lists),
            _ => Err(Malformed),
        }
    }

    pub fn states(&self) -> Result<&Anchor, Malformed> {
        match self {
            Causes::Nothing => Ok(&NO_STATES),
            Causes::States(anchor) => Ok(anchor),
            _ => Err(Malformed),
        }
    }

    /// Takes the operations out, to be changed and put back; none if it is another family's.
    pub fn take_operations(&mut self) -> Vec<Dependency> {
        match std::mem::take(self) {
            Causes::Operations(set) => set,
            _ => Vec::new(),
        }
    }

    /// Of the operations keeps some.
    pub fn retain_operations(&mut self, mut keep: impl FnMut(&Dependency) -> bool) {
        if let Causes::Operations(set) = self {
            set.retain(|dependency| keep(dependency));
            if set.is_empty() {
                *self = Causes::Nothing;
            }
        }
    }

    /// The same of times.
    pub fn take_times(&mut self) -> Box<Vector> {
        match std::mem::take(self) {
            Causes::Times(vector) => vector,
            _ => Box::default(),
        }
    }

    /// The same of a matrix and a time.
    pub fn take_timed_matrix(&mut self) -> Box<TimedMatrix> {
        match std::mem::take(self) {
            Causes::TimedMatrix(matrix) => matrix,
            _ => Box::default(),
        }
    }

    /// The same of lists.
    pub fn take_lists(&mut self) -> Box<Lists> {
        match std::mem::take(self) {
            Causes::Lists(lists) => lists,
            _ => Box::default(),
        }
    }

    /// The value of these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Causes, Malformed> {
        let Some((family, rest)) = bytes.split_first() else { return Ok(Causes::Nothing) };
        let causes = match *family {
            OPERATIONS => dependency_set::decode(rest)?.into(),
            TIMES => Vector::decode(rest)?.into(),
            TIMED_MATRIX => decode_timed_matrix(rest)?.into(),
            LISTS => Lists::decode(rest)?.into(),
            STATES => Anchor::decode(rest)?.into(),
            EXTENSION.. => Causes::Extension(Opaque(bytes.to_vec())),
            _ => return Err(Malformed),
        };
        // Nothing has no bytes.
        if causes.is_empty() { Err(Malformed) } else { Ok(causes) }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.encoded_bytes());
        self.encode_into(&mut out);
        out
    }

    pub fn encode_into(&self, out: &mut Vec<u8>) {
        match self {
            Causes::Nothing => {}
            Causes::Operations(set) => {
                out.push(OPERATIONS);
                dependency_set::encode_into(set, out);
            }
            Causes::Times(vector) => {
                out.push(TIMES);
                vector.encode_into(out);
            }
            Causes::TimedMatrix(matrix) => {
                out.push(TIMED_MATRIX);
                out.extend_from_slice(&matrix.time.0.to_le_bytes());
                if !matrix.elements.is_empty() {
                    out.push(OPERATIONS);
                    dependency_set::encode_into(&matrix.elements, out);
                }
            }
            Causes::Lists(lists) => {
                out.push(LISTS);
                lists.encode_into(out);
            }
            Causes::States(anchor) => {
                out.push(STATES);
                anchor.encode_into(out);
            }
            Causes::Extension(Opaque(bytes)) => out.extend_from_slice(bytes),
        }
    }

    /// How many bytes its encoding has.
    pub fn encoded_bytes(&self) -> usize {
        match self {
            Causes::Nothing => 0,
            Causes::Operations(set) => 1 + dependency_set::encoded_bytes(set),
            Causes::Times(vector) => 1 + vector.encoded_bytes(),
            Causes::TimedMatrix(matrix) if matrix.elements.is_empty() => 1 + TIME_BYTES,
            Causes::TimedMatrix(matrix) => 2 + TIME_BYTES + dependency_set::encoded_bytes(&matrix.elements),
            Causes::Lists(lists) => 1 + lists.encoded_bytes(),
            Causes::States(anchor) => 1 + anchor.encoded_bytes(),
            Causes::Extension(opaque) => opaque.0.len(),
        }
    }

    /// The same with each time replaced. Whose time it is, is told where it is known.
    pub fn map_times(
        &self,
        mut each: impl FnMut(Option<crate::DatacenterId>, LogicalTime) -> LogicalTime,
    ) -> Causes {
        match self {
            Causes::Times(vector) => {
                let mut vector = vector.clone();
                let Vector { times, abandoned, doubted, .. } = &mut *vector;
                for times in [times, abandoned, doubted] {
                    *times = times.entries().map(|(of, time)| each(Some(of), time)).collect();
                }
                vector.into()
            }
            Causes::TimedMatrix(matrix) => {
                let (time, elements) = (each(None, matrix.time), matrix.elements.clone());
                TimedMatrix { time, elements }.into()
            }
            Causes::Nothing
            | Causes::Operations(_)
            | Causes::Lists(_)
            | Causes::States(_)
            | Causes::Extension(_) => self.clone(),
        }
    }
}

fn decode_timed_matrix(bytes: &[u8]) -> Result<TimedMatrix, Malformed> {
    let (time, matrix) = bytes.split_first_chunk::<TIME_BYTES>().ok_or(Malformed)?;
    let time = LogicalTime(u64::from_le_bytes(*time));
    match matrix.split_first() {
        None => Ok(TimedMatrix { time, elements: Vec::new() }),
        Some((&OPERATIONS, elements)) if !elements.is_empty() => {
            Ok(TimedMatrix { time, elements: dependency_set::decode(elements)? })
        }
        Some(_) => Err(Malformed),
    }
}

impl From<Vec<Dependency>> for Causes {
    fn from(set: Vec<Dependency>) -> Causes {
        if set.is_empty() { Causes::Nothing } else { Causes::Operations(set) }
    }
}

impl From<Box<Vector>> for Causes {
    fn from(vector: Box<Vector>) -> Causes {
        if *vector == NO_TIMES { Causes::Nothing } else { Causes::Times(vector) }
    }
}

impl From<Box<TimedMatrix>> for Causes {
    fn from(matrix: Box<TimedMatrix>) -> Causes {
        if *matrix == NO_MATRIX { Causes::Nothing } else { Causes::TimedMatrix(matrix) }
    }
}

impl From<Box<Lists>> for Causes {
    fn from(lists: Box<Lists>) -> Causes {
        if *lists == NO_LISTS { Causes::Nothing } else { Causes::Lists(lists) }
    }
}

impl From<Vector> for Causes {
    fn from(vector: Vector) -> Causes {
        Box::new(vector).into()
    }
}

impl From<TimedMatrix> for Causes {
    fn from(matrix: TimedMatrix) -> Causes {
        Box::new(matrix).into()
    }
}

impl From<Lists> for Causes {
    fn from(lists: Lists) -> Causes {
        Box::new(lists).into()
    }
}

impl From<Anchor> for Causes {
    fn from(mut anchor: Anchor) -> Causes {
        anchor.states.truncate(anchor::STATES_MAX);
        if anchor == NO_STATES { Causes::Nothing } else { Causes::States(Box::new(anchor)) }
    }
}

/// That of its bytes: who compares runs by hashes compares what was said between nodes.
impl Hash for Causes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.encode().hash(state);
    }
}

#[cfg(test)]
mod tests;
