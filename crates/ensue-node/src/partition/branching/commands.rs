//! `BRANCH`: transactions that choose their branch, merges, and everything that is told of states.
//!
//! Words arrive as the client wrote them. Whatever is wrong with them is answered before anything is done.

use super::steps::{aborted, default_begin, default_end};
use super::{Branching, Seat, value};
use crate::command::Fingerprint;
use crate::evaluate::ANSWER_TOO_LONG;
use crate::partition::cx::Cx;
use bytes::Bytes;
use ensue_branch::{Constraint, Mode, StateId, StateView, Term};
use ensue_resp::{CommandError, number};
use ensue_types::Anchor;
use ensue_types::{DatacenterId, KeyspaceId, Reply, limits};

/// States that `LOG` tells unless it is asked for more.
const LOG_COUNT: usize = 100;

const IS_OPEN: Reply = Reply::error("ERR a transaction is open: BRANCH COMMIT or BRANCH ABORT first");

pub(in crate::partition) type Answer = Result<Reply, Reply>;

/// Parts of an answer, made as long as they are not too much: of one value, many states may be asked.
#[derive(Default)]
struct Made {
    replies: Vec<Reply>,
    bytes: usize,
}

impl Made {
    fn add(&mut self, reply: Reply) -> Result<(), Reply> {
        self.bytes += reply.encoded_bytes();
        if self.bytes > limits::ANSWER_BYTES_MAX {
            return Err(ANSWER_TOO_LONG);
        }
        self.replies.push(reply);
        Ok(())
    }
}

impl Branching {
    pub(in crate::partition) fn branch_begin(
        &mut self,
        cx: &Cx,
        seat: Seat,
        anchor: &mut Anchor,
        words: &[Bytes],
    ) -> Answer {
        let constraint = if words.is_empty() { default_begin(anchor) } else { begin_constraint(words)? };
        let anchors = self.ready_to_begin(cx, seat, anchor)?;
        let branches = self.branches(seat.3);
        let transaction = branches.begin(&anchors, &constraint).map_err(|abort| aborted(&abort))?;
        let at = branches.transaction(transaction).map(|(_, at)| at[0]);
        self.sit(cx, seat, transaction, anchor);
        Ok(at.map_or(Reply::Nil, id_text))
    }

    pub(in crate::partition) fn branch_merge(
        &mut self,
        cx: &Cx,
        seat: Seat,
        anchor: &mut Anchor,
        words: &[Bytes],
        merger: Option<DatacenterId>,
    ) -> Answer {
        let constraint = if words.is_empty() { Constraint::of(Term::Any) } else { begin_constraint(words)? };
        if let Some(merger) = merger {
            if merger != cx.datacenter {
                let name = &cx.config.topology.datacenters[usize::from(merger.0)].name;
                return Err(Reply::Error(format!("NOTMERGER branches are merged in {name}").into()));
            }
        }
        let anchors = self.ready_to_begin(cx, seat, anchor)?;
        let branches = self.branches(seat.3);
        let transaction = branches.begin_merge(&anchors, &constraint).map_err(|abort| aborted(&abort))?;
        let at = branches.transaction(transaction).map(|(_, at)| at.to_vec()).unwrap_or_default();
        self.sit(cx, seat, transaction, anchor);
        Ok(id_list(&at))
    }

    /// The anchors of a session that has no transaction. Of one that its owner has forgotten the session must know the
    /// end first: what it sends next may be meant for it.
    fn ready_to_begin(&mut self, cx: &Cx, seat: Seat, anchor: &Anchor) -> Result<Vec<StateId>, Reply> {
        if self.open_transaction(cx, seat, anchor)?.is_some() {
            return Err(IS_OPEN);
        }
        Ok(self.anchors(seat.3, anchor))
    }

    pub(in crate::partition) fn branch_abort(&mut self, cx: &Cx, seat: Seat, anchor: &mut Anchor) -> Answer {
        let transaction = match self.leave(cx, seat, anchor) {
            Ok(transaction) => transaction,
            Err(reply) if reply == super::steps::OVER => return Ok(Reply::OK),
            Err(reply) => return Err(reply),
        };
        self.branches(seat.3).abort(transaction).map_err(|abort| aborted(&abort))?;
        Ok(Reply::OK)
    }

    pub(in crate::partition) fn branch_checkout(
        &mut self,
        cx: &Cx,
        seat: Seat,
        anchor: &mut Anchor,
        words: &[Bytes],
    ) -> Answer {
        let [state] = words else { return Err(CommandError::wrong_arity("branch|checkout").reply()) };
        let state = state_of(state)?;
        self.ready_to_begin(cx, seat, anchor)?;
        let state = self.branches(seat.3).live(state).map_err(|abort| aborted(&abort))?;
        self.move_anchor(seat.3, anchor, &[state]);
        Ok(Reply::OK)
    }

    pub(in crate::partition) fn branch_session(&mut self, seat: Seat, anchor: &Anchor) -> Answer {
        let anchors = self.anchors(seat.3, anchor);
        let open = self.sittings.get(&seat).filter(|_| anchor.open).copied();
        let branches = self.branches(seat.3);
        let open = open.and_then(|sitting| branches.transaction(sitting.transaction));
        let (mode, reads) = match open {
            None => ("none", Vec::new()),
            Some((Mode::Single, at)) => ("single", at.to_vec()),
            Some((Mode::Merge, at)) => ("merge", at.to_vec()),
        };
        let pair = |name: &'static str, value: Reply| (Reply::bulk(name), value);
        Ok(Reply::Map(vec![
            pair("anchor", id_list(&anchors)),
            pair("transaction", Reply::bulk(mode)),
            pair("reads", id_list(&reads)),
            pair("begin", Reply::bulk(default_begin(anchor).to_string())),
            pair("end", Reply::bulk(default_end(anchor).to_string())),
        ]))
    }

    /// The states that a question is about: those named, or those of the session's merge, or all leaves.
    fn asked_states(
        &mut self,
        cx: &Cx,
        seat: Seat,
        anchor: &Anchor,
        words: &[Bytes],
    ) -> Result<Vec<StateId>, Reply> {
        if !words.is_empty() {
            return words.iter().map(state_of).collect();
        }
        // Of a transaction that is over, its states are not those that the session believes.
        let open = self.open_transaction(cx, seat, anchor)?;
        let branches = self.branches(seat.3);
        let open = open.and_then(|transaction| branches.transaction(transaction));
        Ok(open.map_or_else(|| branches.leaves(), |(_, at)| at.to_vec()))
    }

    pub(in crate::partition) fn branch_fork_points(
        &mut self,
        cx: &Cx,
        seat: Seat,
        anchor: &Anchor,
        words: &[Bytes],
    ) -> Answer {
        let states = self.asked_states(cx, seat, anchor, words)?;
        let points = self.branches(seat.3).fork_points(&states).map_err(|abort| aborted(&abort))?;
        let point = |(id, weight)| Reply::Array(vec![id_text(id), Reply::Integer(weight)]);
        Ok(Reply::Array(points.into_iter().map(point).collect()))
    }

    pub(in crate::partition) fn branch_conflicts(
        &mut self,
        cx: &Cx,
        seat: Seat,
        anchor: &Anchor,
        words: &[Bytes],
    ) -> Answer {
        let states = self.asked_states(cx, seat, anchor, words)?;
        let keys = self.branches(seat.3).conflicts(&states).map_err(|abort| aborted(&abort))?;
        Ok(Reply::Array(keys.into_iter().map(Reply::Bulk).collect()))
    }

    pub(in crate::partition) fn branch_get(
        &mut self,
        cx: &mut Cx,
        seat: Seat,
        anchor: &Anchor,
        words: &[Bytes],
    ) -> Answer {
        let [key, states @ ..] = words else { return Err(CommandError::wrong_arity("branch|get").reply()) };
        let states = self.asked_states(cx, seat, anchor, states)?;
        let now_ms = cx.tick().ms();
        let sitting = self.sittings.get(&seat).copied();
        let branches = self.branches(seat.3);
        let mut made = Made::default();
        for state in states {
            let found = branches.value_at(key, state).map_err(|abort| aborted(&abort))?;
            made.add(value::reply(found.as_ref(), now_ms))?;
        }
        if let Some(sitting) = sitting {
            branches.get(sitting.transaction, key, true).map_err(|abort| aborted(&abort))?;
        }
        Ok(Reply::Array(made.replies))
    }

    pub(in crate::partition) fn branch_diff(
        &mut self,
        cx: &mut Cx,
        keyspace: KeyspaceId,
        a: StateId,
        b: StateId,
    ) -> Answer {
        let now_ms = cx.tick().ms();
        let found = self.branches(keyspace).difference(a, b).map_err(|abort| aborted(&abort))?;
        let mut made = Made::default();
        for (key, a, b) in found {
            let value = |value: Option<Bytes>| value::reply(value.as_ref(), now_ms);
            made.add(Reply::Array(vec![Reply::Bulk(key), value(a), value(b)]))?;
        }
        Ok(Reply::Array(made.replies))
    }

    pub(in crate::partition) fn branch_log(&mut self, keyspace: KeyspaceId, words: &[Bytes]) -> Answer {
        let (count, rest) = match words {
            [word, count, rest @ ..] if word.eq_ignore_ascii_case(b"count") => {
                let count = number::parse_i64(count).and_then(|count| usize::try_from(count).ok());
                (count.ok_or_else(|| CommandError::NotInteger.reply())?, rest)
            }
            rest => (LOG_COUNT, rest),
        };
        let from = match rest {
            [] => None,
            [state] => Some(state_of(state)?),
            _ => return Err(CommandError::Syntax.reply()),
        };
        let states = self.branches(keyspace).log(from).map_err(|abort| aborted(&abort))?;
        let count = if count == 0 { usize::MAX } else { count };
        let mut made = Made::default();
        states.take(count).try_for_each(|state| made.add(state_line(state)))?;
        Ok(Reply::Array(made.replies))
    }

    pub(in crate::partition) fn branch_info(&mut self, keyspace: KeyspaceId) -> Reply {
        let metrics = self.branches(keyspace).metrics();
        let counts = [
            ("states", metrics.states as u64),
            ("leaves", metrics.leaves as u64),
            ("chains", metrics.chains as u64),
            ("keys", metrics.keys as u64),
            ("records", metrics.records as u64),
            ("bytes", metrics.bytes as u64),
            ("waiting", metrics.waiting as u64),
            ("transactions", metrics.transactions as u64),
            ("promoted", metrics.promoted as u64),
            ("collected", metrics.collected),
            ("commits", metrics.commits),
            ("merges", metrics.merges),
            ("aborts", metrics.aborts),
            ("forks", metrics.forks),
        ];
        let pair = |(name, count): (&'static str, u64)| (Reply::bulk(name), Reply::Integer(count as i64));
        Reply::Map(counts.into_iter().map(pair).collect())
    }

    pub(in crate::partition) fn branch_digest(&mut self, keyspace: KeyspaceId, with_states: bool) -> Reply {
        let mut fingerprint = Fingerprint::new();
        self.branches(keyspace).visit(with_states, |part| fingerprint = fingerprint.part(part));
        Reply::bulk(format!("{:016x}", fingerprint.finish()))
    }
}

pub(in crate::partition) fn constraint_of(words: &[Bytes]) -> Result<Constraint, Reply> {
    let words = words.iter().map(|word| &word[..]);
    Constraint::parse(words).map_err(|error| Reply::Error(format!("ERR {error}").into()))
}

pub(in crate::partition) fn begin_constraint(words: &[Bytes]) -> Result<Constraint, Reply> {
    let for_begin = constraint_of(words)?.for_begin();
    for_begin.map_err(|error| Reply::Error(format!("ERR {error}").into()))
}

pub(in crate::partition) fn state_of(word: &Bytes) -> Result<StateId, Reply> {
    let id = std::str::from_utf8(word).ok().and_then(|text| text.parse().ok());
    id.filter(|id: &StateId| id.site() != DatacenterId::EVERY).ok_or(Reply::error(
        "ERR a state has a name such as 12.0: its number, a dot and its datacenter's number",
    ))
}

pub(in crate::partition) fn id_text(id: StateId) -> Reply {
    Reply::bulk(id.to_string())
}

pub(in crate::partition) fn id_list(ids: &[StateId]) -> Reply {
    Reply::Array(ids.iter().map(|id| id_text(*id)).collect())
}

fn state_line(state: StateView) -> Reply {
    let flags = [
        (state.is_leaf, "leaf"),
        (state.is_fork, "fork"),
        (state.is_merge, "merge"),
        (state.is_ceiling, "ceiling"),
        (state.is_above, "above"),
    ];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| Reply::bulk(word));
    Reply::Array(vec![
        id_text(state.id),
        id_list(&state.parents),
        Reply::Array(state.writes.into_iter().map(Reply::Bulk).collect()),
        Reply::Array(flags.collect()),
    ])
}
