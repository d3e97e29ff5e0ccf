//! Layouts of what sessions ask beside their commands: replicas, shared contexts, metrics, other cores.

use super::reader::Reader;
use super::tag;
use super::writer::Writer;
use crate::error::Malformed;
use crate::limits;
use crate::message::{CoreQuery, Message};
use ensue_types::{CoreId, PartitionId};

const QUERY_CLIENT_LIST: u8 = 1;
const QUERY_METRICS: u8 = 2;
const QUERY_RESET_STATISTICS: u8 = 3;
const QUERY_ORDER: u8 = 4;

pub(super) fn write(w: &mut Writer<'_>, message: &Message) {
    match message {
        Message::AwaitReplicas { request, dependencies, times, datacenters, here } => {
            w.request(*request).dependencies(dependencies).times(times).u8(*datacenters).u8(u8::from(*here))
        }
        Message::ReplicasReached { request, datacenters, here } => {
            w.request(*request).u8(*datacenters).u8(u8::from(*here))
        }
        Message::CountReplicas { request, dependencies, times } => {
            w.request(*request).dependencies(dependencies).times(times)
        }
        Message::ContextFetch { request, context } => w.request(*request).context_name(context),
        Message::ContextFetched { request, since, context } => {
            w.request(*request).time(*since).context(context)
        }
        Message::ContextMerge { request, name, context } => {
            w.request(*request).context_name(name).context(context)
        }
        Message::ContextMerged { request } => w.request(*request),
        Message::MetricsQuery { request } => w.request(*request),
        Message::MetricsAnswer { request, metrics } => w.request(*request).metrics(metrics),
        Message::CoreQuery { request, query } => {
            w.request(*request);
            match query {
                CoreQuery::ClientList => w.u8(QUERY_CLIENT_LIST),
                CoreQuery::Metrics => w.u8(QUERY_METRICS),
                CoreQuery::ResetStatistics => w.u8(QUERY_RESET_STATISTICS),
                CoreQuery::Order(words) => w.u8(QUERY_ORDER).args(words),
            }
        }
        Message::CoreAnswer { request, text, metrics } => {
            w.request(*request).bytes(limits::ANSWER_BYTES, text).metrics(metrics)
        }
        Message::Replica { partition, bytes } => w.u16(partition.0).bytes(limits::REPLICA_BYTES, bytes),
        Message::Leads { partition, term } => w.u16(partition.0).u64(*term),
        Message::GroupAsk { partition, number, wish } => {
            w.u16(partition.0).u64(*number).option(wish.as_ref(), |w, (from, to)| {
                w.u16(from.0).u16(to.0);
            })
        }
        Message::GroupTold { number, is_done, text } => {
            w.u64(*number).u8(u8::from(*is_done)).bytes(limits::ANSWER_BYTES, text)
        }
        Message::BackupAsk { number, words } => w.u64(*number).args(words),
        Message::BackupTold { number, reply } => w.u64(*number).reply(reply),
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
            here: r.bool()?,
        },
        tag::REPLICAS_REACHED => {
            Message::ReplicasReached { request: r.request()?, datacenters: r.u8()?, here: r.bool()? }
        }
        tag::COUNT_REPLICAS => Message::CountReplicas {
            request: r.request()?,
            dependencies: r.dependencies()?,
            times: r.times()?,
        },
        tag::CONTEXT_FETCH => Message::ContextFetch { request: r.request()?, context: r.context_name()? },
        tag::CONTEXT_FETCHED => {
            Message::ContextFetched { request: r.request()?, since: r.time()?, context: r.context()? }
        }
        tag::CONTEXT_MERGE => {
            Message::ContextMerge { request: r.request()?, name: r.context_name()?, context: r.context()? }
        }
        tag::CONTEXT_MERGED => Message::ContextMerged { request: r.request()? },
        tag::METRICS_QUERY => Message::MetricsQuery { request: r.request()? },
        tag::METRICS_ANSWER => Message::MetricsAnswer { request: r.request()?, metrics: r.metrics()? },
        tag::CORE_QUERY => Message::CoreQuery { request: r.request()?, query: read_query(r)? },
        tag::CORE_ANSWER => Message::CoreAnswer {
            request: r.request()?,
            text: r.bytes(limits::ANSWER_BYTES)?,
            metrics: r.metrics()?,
        },
        tag::REPLICA => {
            Message::Replica { partition: PartitionId(r.u16()?), bytes: r.bytes(limits::REPLICA_BYTES)? }
        }
        tag::LEADS => Message::Leads { partition: PartitionId(r.u16()?), term: r.u64()? },
        tag::GROUP_ASK => Message::GroupAsk {
            partition: PartitionId(r.u16()?),
            number: r.u64()?,
            wish: r.option(|r| Ok((CoreId(r.u16()?), CoreId(r.u16()?))))?,
        },
        tag::GROUP_TOLD => {
            Message::GroupTold { number: r.u64()?, is_done: r.bool()?, text: r.bytes(limits::ANSWER_BYTES)? }
        }
        tag::BACKUP_ASK => Message::BackupAsk { number: r.u64()?, words: r.args()? },
        tag::BACKUP_TOLD => Message::BackupTold { number: r.u64()?, reply: r.reply()? },
        tag => return Err(Malformed::UnknownMessage { tag }),
    })
}

fn read_query(r: &mut Reader<'_>) -> Result<CoreQuery, Malformed> {
    match r.u8()? {
        QUERY_CLIENT_LIST => Ok(CoreQuery::ClientList),
        QUERY_METRICS => Ok(CoreQuery::Metrics),
        QUERY_RESET_STATISTICS => Ok(CoreQuery::ResetStatistics),
        QUERY_ORDER => Ok(CoreQuery::Order(r.args()?)),
        value => Err(Malformed::UnknownKind { what: "question to a core", value }),
    }
}
