//! The vocabulary of Ensue: identifiers, time, versions, effects, answers and every bound.
//!
//! Nothing arrives here and nothing leaves: these are values. No type in this crate knows a protocol, a socket or a
//! file, and none reads a clock. Byte layouts belong to `ensue-wire` and `ensue-store`; that of `Causes`, which both
//! need, stands here.

pub mod causes;
pub mod clock;
pub mod context;
pub mod decimal;
pub mod effect;
pub mod element;
pub mod escrow;
mod field_deadline;
pub mod geo;
mod home;
pub mod id;
pub mod limits;
pub mod observed;
pub mod part;
pub mod previous;
pub mod reply;
pub mod rule;
pub mod score;
pub mod slot;
pub mod source;
pub mod stamp;
pub mod stream;
pub mod time_vector;

pub use causes::{Anchor, Causes, Lists, Malformed, Mode, TimedMatrix, Vector};
pub use clock::{HybridClock, LogicalTime, Now};
pub use context::{Context, Opaque};
pub use decimal::Decimal;
pub use effect::{Column, Effect, EpochSum, Over, RowEffect, Seen, SeenSum};
pub use escrow::{Escrow, Gift, Refused, Side, Terms};
pub use field_deadline::FieldDeadline;
pub use geo::{GeoPoint, GeoShape};
pub use home::{HomeMove, HomeStep};
pub use id::{
    Args, CoreId, DatacenterId, DatacenterSet, Dependency, DirectoryId, Extent, Incarnation, KeyspaceId,
    NoPosition, OperationId, PartitionId, Position, RequestId, SessionId,
};
pub use observed::Observed;
pub use part::Part;
pub use previous::Previous;
pub use reply::Reply;
pub use rule::{Breaking, Rule};
pub use score::Score;
pub use slot::{SLOTS, partition_of, slot_of};
pub use source::{Beyond, Carried, HereSince, Source, Visibility, Within};
pub use stamp::Stamp;
pub use stream::{Section, StreamId, StreamPart};
pub use time_vector::TimeVector;
