//! `CLUSTER`: a datacenter as clients of Redis Cluster see it, which route by themselves.
//!
//! One node has all slots of its datacenter, so every command goes there, and nobody is redirected. Other datacenters
//! are clusters of their own. The address that is told is the one to which the client has connected.

use crate::NodeConfig;
use crate::command::Fingerprint;
use crate::session::cx::Cx;
use crate::session::plan::Plan;
use bytes::Bytes;
use ensue_resp::{CommandError, command, number};
use ensue_types::{Args, PartitionId, Reply, SLOTS, slot_of};

/// What a `CLUSTER` comes to.
pub(crate) enum Clustered {
    Answered(Reply),
    /// The keys of a partition, of which those of a slot are meant.
    Asks(Plan, InSlot),
}

/// The keys of a slot: so many of them, or only their number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InSlot {
    slot: u16,
    limit: Option<usize>,
}

/// `CLUSTER`, of a client that has connected to this address.
pub(crate) fn on_command(cx: &Cx<'_>, local_address: &str, args: &Args) -> Clustered {
    let word = args[1].to_ascii_lowercase();
    let node = Node::new(&cx.core.config, local_address);
    Clustered::Answered(match (word.as_slice(), &args[2..]) {
        (b"info", []) => Reply::Verbatim(INFO.into()),
        (b"myid" | b"myshardid", []) => Reply::bulk(node.id),
        (b"slots", []) => node.slots(),
        (b"shards", []) => node.shards(),
        (b"nodes", []) => Reply::Verbatim(node.line().into()),
        (b"links", []) => Reply::Array(Vec::new()),
        (b"keyslot", [key]) => Reply::Integer(slot_of(key).into()),
        (b"countkeysinslot", [slot]) => return in_slot(cx, slot, None),
        (b"getkeysinslot", [slot, count]) => match number::parse_i64(count) {
            Some(count) => match usize::try_from(count) {
                Ok(count) => return in_slot(cx, slot, Some(count)),
                Err(_) => Reply::error("ERR Invalid number of keys"),
            },
            None => CommandError::NotInteger.reply(),
        },
        (b"help", []) => Reply::Array(HELP.iter().map(|&line| Reply::Status(line.into())).collect()),
        (name, _) if REFUSED.iter().any(|refused| refused.as_bytes() == name) => refusal(name),
        _ => command::misused(args).reply(),
    })
}

fn in_slot(cx: &Cx<'_>, slot: &Bytes, limit: Option<usize>) -> Clustered {
    let slot = number::parse_i64(slot).and_then(|slot| u16::try_from(slot).ok()).filter(|slot| *slot < SLOTS);
    let Some(slot) = slot else {
        return Clustered::Answered(Reply::error("ERR Invalid or out of range slot"));
    };
    let mut plan = Plan::single(cx.spread());
    let owner = u32::from(slot) * u32::from(cx.spread()) / u32::from(SLOTS);
    let keys = vec![Bytes::from_static(b"keys"), Bytes::from_static(b"*")];
    plan.add_at(PartitionId(owner as u16), false, keys);
    Clustered::Asks(plan, InSlot { slot, limit })
}

impl InSlot {
    /// The answer, of all keys of the partition.
    pub(crate) fn answer(self, keys: Reply) -> Reply {
        let Reply::Array(keys) = keys else { return keys };
        let is_there = |key: &Reply| matches!(key, Reply::Bulk(key) if slot_of(key) == self.slot);
        let keys = keys.into_iter().filter(is_there);
        match self.limit {
            None => Reply::Integer(keys.count() as i64),
            Some(limit) => Reply::Array(keys.take(limit).collect()),
        }
    }
}

/// The node of this datacenter.
struct Node {
    id: String,
    host: String,
    port: i64,
}

impl Node {
    fn new(config: &NodeConfig, local_address: &str) -> Node {
        let (host, port) = local_address.rsplit_once(':').unwrap_or((local_address, "0"));
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Node { id: id_of(config), host, port: port.parse().unwrap_or(0) }
    }

    fn slots(&self) -> Reply {
        let node = Reply::Array(vec![
            Reply::bulk(self.host.clone()),
            Reply::Integer(self.port),
            Reply::bulk(self.id.clone()),
            Reply::Array(Vec::new()),
        ]);
        Reply::Array(vec![Reply::Array(vec![Reply::Integer(0), Reply::Integer((SLOTS - 1).into()), node])])
    }

    fn shards(&self) -> Reply {
        let node = Reply::Map(vec![
            (Reply::bulk("id"), Reply::bulk(self.id.clone())),
            (Reply::bulk("port"), Reply::Integer(self.port)),
            (Reply::bulk("ip"), Reply::bulk(self.host.clone())),
            (Reply::bulk("endpoint"), Reply::bulk(self.host.clone())),
            (Reply::bulk("role"), Reply::bulk("master")),
            (Reply::bulk("replication-offset"), Reply::Integer(0)),
            (Reply::bulk("health"), Reply::bulk("online")),
        ]);
        let slots = Reply::Array(vec![Reply::Integer(0), Reply::Integer((SLOTS - 1).into())]);
        Reply::Array(vec![Reply::Map(vec![
            (Reply::bulk("slots"), slots),
            (Reply::bulk("nodes"), Reply::Array(vec![node])),
        ])])
    }

    /// There is no second port, by which the nodes of Redis Cluster speak to each other.
    fn line(&self) -> String {
        let Node { id, host, port } = self;
        format!("{id} {host}:{port}@0 myself,master - 0 0 1 connected 0-{}\n", SLOTS - 1)
    }
}

/// The same for every start of a node of this cluster and datacenter.
fn id_of(config: &NodeConfig) -> String {
    let named =
        |name: &str| config.directives.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let cluster = named("cluster-name").map_or("", String::as_str);
    let topology = &config.topology;
    let datacenter = &topology.datacenters[usize::from(topology.datacenter.0)].name;
    let part = |number| {
        let hash = Fingerprint::new().part(cluster.as_bytes()).part(datacenter.as_bytes());
        hash.word(number).finish()
    };
    let mut id = format!("{:016x}{:016x}{:016x}", part(0), part(1), part(2));
    id.truncate(ID_DIGITS);
    id
}

fn refusal(word: &[u8]) -> Reply {
    let word = String::from_utf8_lossy(word).to_ascii_uppercase();
    let words = format!(
        "ERR CLUSTER {word} is refused: the node of a datacenter has all slots, and which datacenters there are is \
         read from the configuration"
    );
    Reply::Error(words.into())
}

const ID_DIGITS: usize = 40;

const INFO: &str = "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:16384\r\n\
    cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:1\r\ncluster_size:1\r\n\
    cluster_current_epoch:1\r\ncluster_my_epoch:1\r\n";

/// Those that would change the nodes of a cluster of Redis or which slots they have.
const REFUSED: [&str; 17] = [
    "addslots",
    "addslotsrange",
    "bumpepoch",
    "count-failure-reports",
    "delslots",
    "delslotsrange",
    "failover",
    "flushslots",
    "forget",
    "meet",
    "replicas",
    "replicate",
    "reset",
    "saveconfig",
    "set-config-epoch",
    "setslot",
    "slaves",
];

const HELP: [&str; 23] = [
    "CLUSTER <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "COUNTKEYSINSLOT <slot>",
    "    Return the number of keys in <slot>.",
    "GETKEYSINSLOT <slot> <count>",
    "    Return key names stored by current node in a slot.",
    "INFO",
    "    Return information about the cluster.",
    "KEYSLOT <key>",
    "    Return the hash slot for <key>.",
    "LINKS",
    "    Return no links: a datacenter has one node.",
    "MYID",
    "    Return the node id.",
    "MYSHARDID",
    "    Return the same.",
    "NODES",
    "    Return the node of this datacenter, which has all slots.",
    "SHARDS",
    "    Return information about slot range mappings and the node that has them.",
    "SLOTS",
    "    Return the same in the form of older versions.",
    "HELP",
    "    Print this help.",
];
