//! Blocking pops: parked when they find nothing, and executed again when their row has something.

use super::Executor;
use crate::partition::cx::Cx;
use crate::partition::order::RowName;
use crate::partition::work::{Execution, Served};
use bytes::Bytes;
use ensue_protocol::Choice;
use ensue_resp::Request;
use ensue_resp::request::{Awaited, Blocking, Stream, StreamRead, WaitingPop};
use ensue_store::row::Kind;
use ensue_store::view::View;
use ensue_types::{Args, KeyspaceId, Reply, StreamId};
use ensue_wire::Address;
use std::collections::BTreeSet;

/// Whether a pop waits that was answered so.
pub(super) fn waits(execution: &Execution, request: &Request, reply: &Reply) -> bool {
    matches!((request, reply), (Request::Blocking(_), Reply::Nil | Reply::NilArray))
        && !execution.together
        && !execution.timed_out
        && execution.atomic.is_none()
}

/// A pop that is offered something takes it where that is.
pub(super) fn offered(execution: &Execution, request: Request) -> Request {
    match (request, &execution.served) {
        (Request::Blocking(Blocking { pop, timeout_ms }), Some(served)) => {
            Request::Blocking(Blocking { pop: pop.of(&served.key), timeout_ms })
        }
        (request, _) => request,
    }
}

/// What those that wait at a stream want alike: the next entry of a group, or what comes behind an id.
fn wish(pop: &WaitingPop, key: &[u8]) -> Option<(Option<Bytes>, Option<StreamId>)> {
    match pop {
        WaitingPop::Entries(read) => {
            let here = read.streams.iter().filter(|(of, _)| of == key);
            here.map(|(_, behind)| (None, *behind)).min()
        }
        WaitingPop::Delivered(read) => Some((Some(read.group.clone()), None)),
        _ => None,
    }
}

impl Executor<'_> {
    /// Whoever reads what comes behind the last entry waits behind the one that is the last now.
    pub(super) fn behind_latest(
        &mut self,
        execution: &mut Execution,
        args: Args,
        request: Request,
        choice: &Choice,
    ) -> (Args, Request) {
        let Request::Blocking(Blocking { pop: WaitingPop::Entries(read), .. }) = &request else {
            return (args, request);
        };
        if read.streams.iter().all(|(_, behind)| behind.is_some()) {
            return (args, request);
        }
        let keys = read.streams.iter().map(|(key, _)| key.clone()).collect();
        let (latest, at) = (Request::Streams(Stream::Latest { keys }), self.cx.promise());
        let reply = self.keyspaces.read_now(self.cx, self.others, execution, at, &latest, choice);
        let Ok(Reply::Array(ids)) = reply else { return (args, request) };
        let known = StreamRead::with_latest(&args, &ids);
        match Request::parse(&known) {
            Ok(request) => (known, request),
            Err(_) => (args, request),
        }
    }

    /// The batch waits with this command, which has found nothing.
    pub(super) fn park_pop(&mut self, mut execution: Execution, args: Args) {
        // Of its own: it may wait for long, and is not to keep the client's whole read buffer alive meanwhile.
        let args: Args = args.iter().map(|word| Bytes::copy_from_slice(word)).collect();
        let Some(blocking) = Blocking::parse(&args) else { return };
        if self.reads.pops.is_withdrawn(execution.from, execution.request) {
            execution.served = None;
            execution.replies.push(Reply::NilArray);
            return self.advance(execution);
        }
        let keyspace = execution.keyspace;
        let id = match execution.served.take() {
            Some(served) => served.id,
            None => self.reads.pops.next_id(),
        };
        execution.commands.push_front(args);
        let keys = blocking.pop.keys();
        for (_, key) in self.reads.pops.park(id, execution, blocking) {
            self.keyspaces.keyspace(keyspace).await_change(&key);
        }
        if !self.reads.pops.is_offered(id) {
            // It was elsewhere, or has just come: something may be there that it does not see.
            for key in keys {
                if self.there(keyspace, &key).is_some() {
                    self.reads.pops.wake((keyspace, key));
                }
            }
        }
    }

    /// What is at a row is offered to those that wait there, until nobody wants more of it.
    pub(crate) fn serve_pops(&mut self) {
        if self.reads.pops.is_empty() || self.reads.pops.is_offering() || self.keyspaces.is_in_script() {
            return;
        }
        if self.others.failover.retirement.is_begun() {
            // Nobody waits here for what is written elsewhere.
            return self.end_pops(|cx, _, _| Some(cx.retiring()));
        }
        if self.cx.homes.take_ends_waits() {
            // Another home has started: what waits here for its keys would wait in vain.
            self.end_pops(|cx, keyspace, args| cx.home_refusal(keyspace, [args]));
        }
        if self.others.stable_time.have_times_risen() {
            self.reads.pops.look_again();
        }
        self.reads.pops.on_stable(self.others.stable_time.times.stable());
        loop {
            for number in self.reads.pops.keyspaces() {
                while let Some(key) = self.keyspaces.keyspace(number).next_changed() {
                    self.reads.pops.wake((number, key));
                }
            }
            let Some(row) = self.reads.pops.pop_ready() else { return };
            self.serve_row(&row);
        }
    }

    /// Ends those that this refuses.
    fn end_pops(&mut self, refusal: impl Fn(&Cx, KeyspaceId, &Args) -> Option<Reply>) {
        for id in self.reads.pops.all() {
            let command = self.reads.pops.command(id);
            let reply = command.and_then(|(keyspace, args)| refusal(self.cx, keyspace, args));
            let Some(reply) = reply else { continue };
            let Some(mut waited) = self.take_pop(id) else { continue };
            if let Some(args) = waited.commands.pop_front() {
                self.count_resumed(&waited, &args, &reply);
            }
            waited.replies.push(reply);
            self.advance(waited);
        }
    }

    fn serve_row(&mut self, row: &RowName) {
        let (mut behind, mut in_vain) = (None, BTreeSet::new());
        loop {
            let there = self.there(row.0, &row.1);
            let Some(id) = self.reads.pops.next_at(row, behind, there) else { return };
            behind = Some(id);
            // However many wait, none is executed again for what it has read.
            let Some(pop) = self.reads.pops.pop(id) else { return };
            let wish = wish(pop, &row.1);
            if wish.as_ref().is_some_and(|wish| in_vain.contains(wish)) {
                continue;
            }
            if !self.keyspaces.may_serve(self.cx, row, pop) {
                in_vain.extend(wish);
                continue;
            }
            let Some(mut execution) = self.take_pop(id) else { return };
            execution.served = Some(Served { id, key: row.1.clone() });
            self.reads.pops.offer(id);
            self.advance(execution);
            self.reads.pops.end_offer();
            if self.reads.pops.contains(id) {
                self.reads.pops.not_seen(row.clone());
                // Whoever waits for a higher id than there is keeps no other reader from what there is.
                if there != Some(Awaited::Entries) {
                    return;
                }
            }
        }
    }

    /// What a row has that somebody may wait for, as of now.
    fn there(&mut self, keyspace: KeyspaceId, key: &[u8]) -> Option<Awaited> {
        let row = self.keyspaces.rows(keyspace)?.row(key)?;
        match row.kind_at(View::Newest, self.cx.promise().ms()).ok()?? {
            Kind::List => Some(Awaited::Elements),
            Kind::SortedSet => Some(Awaited::Members),
            Kind::Stream => Some(Awaited::Entries),
            Kind::Text | Kind::Hash | Kind::Set | Kind::Bounded => None,
        }
    }

    /// Its session does not wait any longer: it is answered that there was nothing, now or when it comes to wait here.
    pub(super) fn withdraw_pop(&mut self, execution: &Execution) -> Reply {
        let id = self.reads.pops.of_session(execution.from, execution.request);
        match id.and_then(|id| self.take_pop(id)) {
            Some(mut waited) => {
                if let Some(args) = waited.commands.pop_front() {
                    self.count_resumed(&waited, &args, &Reply::NilArray);
                }
                waited.replies.push(Reply::NilArray);
                self.advance(waited);
            }
            None => self.reads.pops.withdraw(execution.from, execution.request),
        }
        Reply::OK
    }

    /// The partition has stopped: nothing comes any more to those that wait here, and what others keep of its rows is
    /// not brought up to date.
    pub(crate) fn on_stopped(&mut self) {
        for id in self.reads.pops.all() {
            if let Some(waited) = self.take_pop(id) {
                self.cx.disavow_request(waited.from, waited.request);
            }
        }
        self.reads.changes.on_stopped(self.cx);
    }

    /// The sessions of a core have given up what they asked.
    pub(crate) fn drop_pops_of(&mut self, core: Address) {
        self.reads.pops.forget_withdrawn_of(core);
        if let Address::Core { core, .. } = core {
            let times = &self.others.stable_time.times;
            self.reads.changes.on_wanted(self.cx, self.keyspaces, times, core, false);
        }
        for id in self.reads.pops.of_core(core) {
            self.take_pop(id);
        }
    }

    fn take_pop(&mut self, id: u64) -> Option<Execution> {
        let (execution, left) = self.reads.pops.take(id)?;
        for (keyspace, key) in left {
            self.keyspaces.keyspace(keyspace).stop_awaiting(&key);
        }
        Some(execution)
    }
}
