//! Envelopes to bytes and back: little endian, no padding, every count before its items.
//!
//! ```text
//!  0        2        4               8               12                       20
//!  +--------+--------+---------------+---------------+------------------------+----------
//!  | version| tag    | from          | to            | sender's logical time  | fields...
//!  | u16    | u16    | kind dc  num  | kind dc  num  | u64                    |
//!  +--------+--------+---------------+---------------+------------------------+----------
//! ```
//!
//! A message has exactly one encoding: booleans and options are 0 or 1, nothing may follow the last field, so whatever
//! decodes encodes to the same bytes. Decoded arguments, entries and bulk strings are slices of the body and keep all
//! of it alive; whoever stores one for long copies it.

mod channel;
mod control;
mod dependency;
mod home;
mod reader;
mod reply;
mod session;
mod stream;
mod tag;
mod time;
mod transaction;
mod value;
mod writer;

#[cfg(test)]
mod tests;

use crate::error::{Malformed, WireError};
use crate::message::{Address, Envelope, Message};
use bytes::Bytes;
use ensue_types::{CoreId, DatacenterId, PartitionId};
use reader::Reader;
use tag::Family;
use writer::Writer;

#[cfg(test)]
pub(crate) use tag::{ALL as TAGS, tag_of};

/// The version that this release writes.
pub const WIRE_VERSION: u16 = 1;
/// The oldest and the newest version that this release reads, as its `Hello` says.
pub const WIRE_VERSION_MIN: u16 = 1;
pub const WIRE_VERSION_MAX: u16 = 1;

/// Appends the bytes of an envelope. If it is beyond a limit, nothing is appended.
pub fn encode(envelope: &Envelope, out: &mut Vec<u8>) -> Result<(), WireError> {
    let mut writer = Writer::new(out);
    writer.u16(WIRE_VERSION).u16(tag::tag_of(&envelope.message));
    write_address(&mut writer, envelope.from);
    write_address(&mut writer, envelope.to);
    writer.time(envelope.time);
    write_message(&mut writer, &envelope.message);
    Ok(writer.finish()?)
}

/// The envelope of one body, all of it.
pub fn decode(body: &Bytes) -> Result<Envelope, WireError> {
    let mut reader = Reader::new(body);
    let theirs = reader.u16()?;
    if !(WIRE_VERSION_MIN..=WIRE_VERSION_MAX).contains(&theirs) {
        return Err(Malformed::Version { theirs, min: WIRE_VERSION_MIN, max: WIRE_VERSION_MAX }.into());
    }
    let tag = reader.u16()?;
    let from = read_address(&mut reader)?;
    let to = read_address(&mut reader)?;
    let time = reader.time()?;
    let message = read_message(&mut reader, tag)?;
    reader.finish()?;
    Ok(Envelope { from, to, time, message })
}

fn write_message(w: &mut Writer<'_>, message: &Message) {
    match Family::of(tag::tag_of(message)) {
        Some(Family::Session) => session::write(w, message),
        Some(Family::Control) => control::write(w, message),
        Some(Family::Dependency) => dependency::write(w, message),
        Some(Family::Transaction) => transaction::write(w, message),
        Some(Family::Stream) => stream::write(w, message),
        Some(Family::Time) => time::write(w, message),
        Some(Family::Channel) => channel::write(w, message),
        Some(Family::Home) => home::write(w, message),
        None => unreachable!("every tag that tag_of gives is of a family"),
    }
}

fn read_message(r: &mut Reader<'_>, tag: u16) -> Result<Message, Malformed> {
    match Family::of(tag) {
        Some(Family::Session) => session::read(r, tag),
        Some(Family::Control) => control::read(r, tag),
        Some(Family::Dependency) => dependency::read(r, tag),
        Some(Family::Transaction) => transaction::read(r, tag),
        Some(Family::Stream) => stream::read(r, tag),
        Some(Family::Time) => time::read(r, tag),
        Some(Family::Channel) => channel::read(r, tag),
        Some(Family::Home) => home::read(r, tag),
        None => Err(Malformed::UnknownMessage { tag }),
    }
}

const ADDRESS_PARTITION: u8 = 1;
const ADDRESS_CORE: u8 = 2;

fn write_address(w: &mut Writer<'_>, address: Address) {
    match address {
        Address::Partition { datacenter, partition } => {
            w.u8(ADDRESS_PARTITION).u8(datacenter.0).u16(partition.0)
        }
        Address::Core { datacenter, core } => w.u8(ADDRESS_CORE).u8(datacenter.0).u16(core.0),
    };
}

fn read_address(r: &mut Reader<'_>) -> Result<Address, Malformed> {
    let kind = r.u8()?;
    let datacenter = DatacenterId(r.u8()?);
    let number = r.u16()?;
    match kind {
        ADDRESS_PARTITION => Ok(Address::Partition { datacenter, partition: PartitionId(number) }),
        ADDRESS_CORE => Ok(Address::Core { datacenter, core: CoreId(number) }),
        value => Err(Malformed::UnknownKind { what: "address", value }),
    }
}
