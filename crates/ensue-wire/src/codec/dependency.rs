//! Layouts of dependency checks.

use super::reader::Reader;
use super::tag;
use super::writer::Writer;
use crate::error::Malformed;
use crate::message::Message;
use ensue_types::DatacenterId;

pub(super) fn write(w: &mut Writer<'_>, message: &Message) {
    match message {
        Message::CheckDependencies { check, origin, dependencies } => {
            w.u64(*check).option(origin.as_ref(), |w, origin| {
                w.u8(origin.0);
            });
            w.dependencies(dependencies)
        }
        Message::DependenciesMet { check, unrecoverable } => w.u64(*check).dependencies(unrecoverable),
        other => unreachable!("no dependency check: {:#06x}", tag::tag_of(other)),
    };
}

pub(super) fn read(r: &mut Reader<'_>, tag: u16) -> Result<Message, Malformed> {
    Ok(match tag {
        tag::CHECK_DEPENDENCIES => {
            let (check, origin) = (r.u64()?, r.option(|r| r.u8().map(DatacenterId))?);
            Message::CheckDependencies { check, origin, dependencies: r.dependencies()? }
        }
        tag::DEPENDENCIES_MET => {
            Message::DependenciesMet { check: r.u64()?, unrecoverable: r.dependencies()? }
        }
        tag => return Err(Malformed::UnknownMessage { tag }),
    })
}
