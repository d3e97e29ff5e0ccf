//! What clients ask for: a mix of operations, over which keys, with values of which length.
//!
//! A workload is a name of the table in `presets`, or a mix such as `get=9,set=1`. Each kind of value has keys of its
//! own, so that a mix never reads a hash as a string.

mod presets;

use crate::error::SpecError;
use crate::keys::Access;
use crate::sizes::Sizes;
use crate::weighted::Weighted;
use std::fmt;
use std::str::FromStr;

pub use presets::{PRESETS, Preset};

/// One kind of operation. Its latency is from its intended start to its last answer, however many commands it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Get,
    Set,
    Incr,
    HGet,
    HSet,
    SAdd,
    MGet(u16),
    MSet(u16),
    /// Of a key that other operations of the mix may write again.
    Del,
    /// A deadline that no run lives to see.
    Expire,
    /// A bit of a string that is no longer than a value.
    SetBit,
    IncrByFloat,
    /// One element at the head; some of them trim the list too.
    LPush,
    LPop,
    /// Ten elements from the head.
    LRange,
    ZAdd,
    ZIncrBy,
    /// Ten members from the lowest score on.
    ZRange,
    /// An entry of one field, to a stream whose length is bounded.
    XAdd,
    /// The ten oldest entries.
    XRange,
    PfAdd,
    /// A script of one command, on a counter.
    Eval,
    /// A push to a list at which another connection of the client is blocked in a pop; it ends when that is answered.
    HandOver,
    /// All fields of a record of ten, which is a hash.
    Read,
    /// One field of a record.
    Update,
    /// A record that was not there, and its entry in the index, if the workload scans.
    Insert,
    /// Records in the order of the index, from a drawn one on. It takes a sorted set.
    Scan,
    /// A read, and when its answer is there, an update.
    ReadModifyWrite,
    /// Columns of several keys, in one MULTI.
    ColumnsRead,
    /// Columns of several keys, a command each.
    ColumnsWrite,
    /// The same in one MULTI.
    ColumnsWriteAtomic,
}

/// The kinds of values; each has keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    Strings,
    Counters,
    Hashes,
    Sets,
    Bitmaps,
    Floats,
    Lists,
    SortedSets,
    Streams,
    Sketches,
    /// Lists that are empty but for what is just handed over. They have no keys that are written before a run.
    HandOvers,
    Records,
    Columns,
}

/// Operations by name, beside `mget:N` and `mset:N`.
const NAMES: [(&str, Operation); 29] = [
    ("get", Operation::Get),
    ("set", Operation::Set),
    ("incr", Operation::Incr),
    ("hget", Operation::HGet),
    ("hset", Operation::HSet),
    ("sadd", Operation::SAdd),
    ("del", Operation::Del),
    ("expire", Operation::Expire),
    ("setbit", Operation::SetBit),
    ("incrbyfloat", Operation::IncrByFloat),
    ("lpush", Operation::LPush),
    ("lpop", Operation::LPop),
    ("lrange", Operation::LRange),
    ("zadd", Operation::ZAdd),
    ("zincrby", Operation::ZIncrBy),
    ("zrange", Operation::ZRange),
    ("xadd", Operation::XAdd),
    ("xrange", Operation::XRange),
    ("pfadd", Operation::PfAdd),
    ("eval", Operation::Eval),
    ("handover", Operation::HandOver),
    ("read", Operation::Read),
    ("update", Operation::Update),
    ("insert", Operation::Insert),
    ("scan", Operation::Scan),
    ("rmw", Operation::ReadModifyWrite),
    ("columns-read", Operation::ColumnsRead),
    ("columns-write", Operation::ColumnsWrite),
    ("columns-write-atomic", Operation::ColumnsWriteAtomic),
];

impl Operation {
    pub fn family(self) -> Family {
        match self {
            Operation::Get | Operation::Set | Operation::MGet(_) | Operation::MSet(_) => Family::Strings,
            Operation::Del | Operation::Expire => Family::Strings,
            Operation::Incr | Operation::Eval => Family::Counters,
            Operation::HGet | Operation::HSet => Family::Hashes,
            Operation::SAdd => Family::Sets,
            Operation::SetBit => Family::Bitmaps,
            Operation::IncrByFloat => Family::Floats,
            Operation::LPush | Operation::LPop | Operation::LRange => Family::Lists,
            Operation::ZAdd | Operation::ZIncrBy | Operation::ZRange => Family::SortedSets,
            Operation::XAdd | Operation::XRange => Family::Streams,
            Operation::PfAdd => Family::Sketches,
            Operation::HandOver => Family::HandOvers,
            Operation::Read
            | Operation::Update
            | Operation::Insert
            | Operation::Scan
            | Operation::ReadModifyWrite => Family::Records,
            Operation::ColumnsRead | Operation::ColumnsWrite | Operation::ColumnsWriteAtomic => {
                Family::Columns
            }
        }
    }

    /// The commands that a server must have.
    pub fn commands(self) -> &'static [&'static str] {
        match self {
            Operation::Get => &["GET"],
            Operation::Set => &["SET"],
            Operation::Incr => &["INCR"],
            Operation::HGet => &["HGET"],
            Operation::HSet | Operation::Update | Operation::Insert => &["HSET"],
            Operation::SAdd => &["SADD"],
            Operation::MGet(_) => &["MGET"],
            Operation::MSet(_) => &["MSET"],
            Operation::Del => &["DEL"],
            Operation::Expire => &["EXPIRE"],
            Operation::SetBit => &["SETBIT"],
            Operation::IncrByFloat => &["INCRBYFLOAT"],
            Operation::LPush => &["LPUSH", "LTRIM"],
            Operation::LPop => &["LPOP"],
            Operation::LRange => &["LRANGE"],
            Operation::ZAdd => &["ZADD"],
            Operation::ZIncrBy => &["ZINCRBY"],
            Operation::ZRange => &["ZRANGE"],
            Operation::XAdd => &["XADD"],
            Operation::XRange => &["XRANGE"],
            Operation::PfAdd => &["PFADD"],
            Operation::Eval => &["EVAL"],
            Operation::HandOver => &["RPUSH", "BLPOP"],
            Operation::Read => &["HGETALL"],
            Operation::Scan => &["HGETALL", "ZADD", "ZRANGEBYSCORE"],
            Operation::ReadModifyWrite => &["HGETALL", "HSET"],
            Operation::ColumnsRead => &["MULTI", "EXEC", "HMGET"],
            Operation::ColumnsWrite => &["HSET"],
            Operation::ColumnsWriteAtomic => &["MULTI", "EXEC", "HSET"],
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::MGet(keys) => write!(f, "mget:{keys}"),
            Operation::MSet(keys) => write!(f, "mset:{keys}"),
            other => {
                let found = NAMES.iter().find(|(_, operation)| operation == other);
                f.write_str(found.map_or("", |(name, _)| name))
            }
        }
    }
}

impl FromStr for Operation {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Operation, SpecError> {
        let known = NAMES.iter().find(|(name, _)| *name == text).map(|(_, operation)| *operation);
        let keys = |number: &str| number.parse().ok().filter(|keys| *keys > 0);
        let several = text.split_once(':').and_then(|(name, number)| match name {
            "mget" => keys(number).map(Operation::MGet),
            "mset" => keys(number).map(Operation::MSet),
            _ => None,
        });
        known.or(several).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            SpecError::Operation(text.into(), format!("{}, mget:N, mset:N", names.join(", ")))
        })
    }
}

/// How many keys an operation on columns takes, and how many columns a key has.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    pub keys_read: Sizes,
    pub keys_written: Sizes,
    pub per_key: Sizes,
}

/// A whole load.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub name: String,
    /// Where its parameters come from.
    pub source: String,
    pub mix: Weighted<Operation>,
    pub access: Access,
    /// Of each value, each field of a record, or each column.
    pub sizes: Sizes,
    pub columns: Columns,
}

/// Bytes of a value, unless something else is said.
const VALUE_BYTES: usize = 64;

impl Workload {
    pub fn operations(&self) -> &[Operation] {
        self.mix.values()
    }

    /// The kinds of values that are written before a run.
    pub fn families(&self) -> Vec<Family> {
        let mut families: Vec<Family> =
            self.operations().iter().map(|operation| operation.family()).collect();
        families.retain(|family| *family != Family::HandOvers);
        families.sort_unstable();
        families.dedup();
        families
    }

    pub fn hands_over(&self) -> bool {
        self.operations().contains(&Operation::HandOver)
    }

    pub fn scans(&self) -> bool {
        self.operations().contains(&Operation::Scan)
    }
}

impl FromStr for Workload {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Workload, SpecError> {
        if let Some(preset) = PRESETS.iter().find(|preset| preset.name == text) {
            return preset.workload();
        }
        if !text.contains(['=', ',']) && text.parse::<Operation>().is_err() {
            let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            return Err(SpecError::Workload(text.into(), names.join(", ")));
        }
        Ok(Workload {
            name: text.into(),
            source: String::new(),
            mix: mix(text)?,
            access: Access::Uniform,
            sizes: Sizes::fixed(VALUE_BYTES),
            columns: Columns {
                keys_read: Sizes::fixed(1),
                keys_written: Sizes::fixed(1),
                per_key: Sizes::fixed(1),
            },
        })
    }
}

/// `get=9,set=1`; an operation without a weight has the weight 1.
fn mix(text: &str) -> Result<Weighted<Operation>, SpecError> {
    let mut choices = Vec::new();
    for part in text.split(',') {
        let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
        let weight = weight.parse().map_err(|_| SpecError::Weight(weight.into()))?;
        choices.push((name.parse()?, weight));
    }
    Weighted::new(choices).ok_or_else(|| SpecError::Weight(text.into()))
}
