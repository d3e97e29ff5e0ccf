//! Layouts of what sessions ask beside their commands: replicas, shared contexts, figures, other cores.

use super::reader::Reader;
use super::tag;
use super::writer::Writer;
use crate::error::Malformed;
use crate::limits;
use crate::message::{CoreQuery, Message};

const QUERY_CLIENT_LIST: u8 = 1;
const QUERY_FIGURES: u8 = 2;

pub(super) fn write(w: &mut Writer<'_>, message: &Message) {
    match message {
        Message::AwaitReplicas { request, dependencies, times, datacenters } => {
            w.request(*request).dependencies(dependencies).times(times).u8(*datacenters)
        }
        Message::ReplicasReached { request, datacenters } => w.request(*request).u8(*datacenters),
        Message::CountReplicas { request, dependencies, times } => {
            w.request(*request).dependencies(dependencies).times(times)
        }
        Message::ContextFetch { request, context } => w.request(*request).context_name(context),
        Message::ContextFetched { request, context } => w.request(*request).context(context),
        Message::ContextMerge { request, name, context } => {
            w.request(*request).context_name(name).context(context)
        }
        Message::ContextMerged { request } => w.request(*request),
        Message::Survey { request } => w.request(*request),
        Message::Surveyed { request, figures } => w.request(*request).figures(figures),
        Message::CoreQuery { request, query } => w.request(*request).u8(match query {
            CoreQuery::ClientList => QUERY_CLIENT_LIST,
            CoreQuery::Figures => QUERY_FIGURES,
        }),
        Message::CoreAnswer { request, text, figures } => {
            w.request(*request).bytes(limits::ANSWER_BYTES, text).figures(figures)
        }
        other => unreachable!("no control message: {:#06x}", tag::tag_of(other)),
    };
}

pub(super) fn read(r: &mut Reader<'_>, tag: u16) -> Result<Message, Malformed> {
    Ok(match tag {
        tag::AWAIT_REPLICAS => Message::AwaitReplicas {
            request: r.request()?,
            dependencies: r.dependencies()?,
            times: r.times()?,
            datacenters: r.u8()?,
        },
        tag::REPLICAS_REACHED => Message::ReplicasReached { request: r.request()?, datacenters: r.u8()? },
        tag::COUNT_REPLICAS => Message::CountReplicas {
            request: r.request()?,
            dependencies: r.dependencies()?,
            times: r.times()?,
        },
        tag::CONTEXT_FETCH => Message::ContextFetch { request: r.request()?, context: r.context_name()? },
        tag::CONTEXT_FETCHED => Message::ContextFetched { request: r.request()?, context: r.context()? },
        tag::CONTEXT_MERGE => {
            Message::ContextMerge { request: r.request()?, name: r.context_name()?, context: r.context()? }
        }
        tag::CONTEXT_MERGED => Message::ContextMerged { request: r.request()? },
        tag::SURVEY => Message::Survey { request: r.request()? },
        tag::SURVEYED => Message::Surveyed { request: r.request()?, figures: r.figures()? },
        tag::CORE_QUERY => Message::CoreQuery { request: r.request()?, query: read_query(r)? },
        tag::CORE_ANSWER => Message::CoreAnswer {
            request: r.request()?,
            text: r.bytes(limits::ANSWER_BYTES)?,
            figures: r.figures()?,
        },
        tag => return Err(Malformed::UnknownMessage { tag }),
    })
}

fn read_query(r: &mut Reader<'_>) -> Result<CoreQuery, Malformed> {
    match r.u8()? {
        QUERY_CLIENT_LIST => Ok(CoreQuery::ClientList),
        QUERY_FIGURES => Ok(CoreQuery::Figures),
        value => Err(Malformed::UnknownKind { what: "question to a core", value }),
    }
}
