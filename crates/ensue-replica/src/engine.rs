//! How the consensus engine is set up, and what of it is made to follow from seeds.

use crate::config::{Config, mix};
use crate::held::Held;
use crate::replica::End;
use raft::eraftpb::{ConfChangeSingle, ConfChangeType};
use raft::{RawNode, ReadOnlyOption};
use slog::{Discard, Logger, o};

/// The consensus engine, as it begins with a log.
pub(crate) fn engine(config: &Config, id: u64, held: Held) -> Result<RawNode<Held>, End> {
    let tuning = &config.tuning;
    let settings = raft::Config {
        id,
        election_tick: tuning.election_ticks,
        heartbeat_tick: tuning.heartbeat_ticks,
        applied: held.applied.0,
        max_size_per_msg: tuning.message_bytes,
        max_inflight_msgs: 64,
        check_quorum: true,
        pre_vote: true,
        // The engine's own lease is none: its leader may believe in itself for an election timeout longer than its
        // followers do.
        read_only_option: ReadOnlyOption::Safe,
        ..raft::Config::default()
    };
    RawNode::new(&settings, held, &Logger::root(Discard, o!())).map_err(engine_failed)
}

/// The engine draws its election timeouts by chance; here they follow from the seed. Called after every step.
pub(crate) fn draw_timeout(config: &Config, raw: &mut RawNode<Held>) {
    let (raft, ticks) = (&mut raw.raft, config.tuning.election_ticks as u64);
    let drawn = mix(config.seed ^ mix(raft.term ^ u64::from(config.node) << 48)) % ticks;
    raft.set_randomized_election_timeout((ticks + drawn) as usize);
}

pub(crate) fn engine_failed(error: raft::Error) -> End {
    End::Failed(format!("the replicated log: {error}"))
}

/// One change of the members.
pub(crate) fn change(kind: ConfChangeType, id: u64) -> ConfChangeSingle {
    let mut change = ConfChangeSingle::new();
    change.set_change_type(kind);
    change.node_id = id;
    change
}
