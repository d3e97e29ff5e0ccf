//! A replica that is a member of its group: entries are proposed, written, acknowledged, committed and carried out.
//!
//! The consensus engine is raft-rs; what it promises others to have is written by `writer`. What takes bytes away is
//! carried out when it is committed, everything else when it is written. Only the leader has the partition, and only
//! from when everything of earlier leaders is carried out.

mod copying;
mod election;
mod role;
mod verifying;

use self::election::Votes;
use self::verifying::Verifying;
use crate::codec::Malformed;
use crate::config::{Config, mix, node_of};
use crate::contents::Contents;
use crate::disk::{Purpose, hide};
use crate::engine::{draw_timeout, engine, engine_failed};
use crate::held::{Held, operation_of};
use crate::journal::{Base, Record};
use crate::leading::Leading;
use crate::members;
use crate::message::{Hello, Last, ReplicaMessage, is_exchanged};
use crate::moving::{self, Move, Refusal, Report};
use crate::operation::Operation;
use crate::question::Question;
use crate::replica::{End, Output, Outputs, answer};
use crate::serving::Serving;
use crate::starting::{FIRST_JOURNAL, Restart, opening, with_entries};
use crate::transfer::{Fetching, Step};
use crate::trust::Trust;
use crate::writer::Writer;
use ensue_store::disk::{DiskDone, DiskOp, FileName, failure_words};
use ensue_types::Rule;
use protobuf::Message as _;
use raft::eraftpb::{self, ConfChangeV2, Entry, EntryType, HardState, MessageType};
use raft::{RawNode, SnapshotStatus, StateRole};
use std::collections::VecDeque;

/// A member greets the others so often while it knows of no leader, and later.
const HELLO_TICKS: u32 = 5;
const SLOW_HELLO_TICKS: u32 = 250;
/// A leader looks at the members so often.
const MEMBERS_TICKS: u32 = 10;

/// A member of the group.
pub(crate) struct Member {
    id: u64,
    raw: RawNode<Held>,
    writer: Writer,
    /// Messages that leave when a step is durable, by its number.
    after: VecDeque<(u64, Vec<eraftpb::Message>)>,
    /// Steps of an engine that was given up, before the first one of this.
    steps_before: u64,
    last_step: u64,
    /// Everything up to this entry that takes bytes away is carried out here.
    executed: u64,
    leading: Option<Leading>,
    trust: Trust,
    votes: Votes,
    fetching: Option<Fetching>,
    /// A file of which another node has other bytes on its disk than it is to have, as this one found last.
    found_spoiled: Option<(u16, FileName)>,
    /// Why the disk of this node does not hold what it is to hold, if it is known not to.
    damage: Option<String>,
    verifying: Verifying,
    /// The step that makes another replica's directory durable as this one's, which ends with this entry.
    taking_over: Option<(u64, u64)>,
    serving: Serving,
    ticks: u32,
    closing: bool,
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (id, executed, leading) = (self.id, self.executed, &self.leading);
        f.debug_struct("Member")
            .field("id", &id)
            .field("executed", &executed)
            .field("leading", leading)
            .finish()
    }
}

impl Member {
    /// A new member, with what it writes first.
    pub(crate) fn begin(
        config: &Config,
        out: &mut Outputs,
        records: Vec<Record>,
        base: Base,
        life: u32,
    ) -> Result<Member, End> {
        let mut hard = HardState::new();
        (hard.term, hard.commit) = (base.term, base.index);
        let mut writer = Writer::new(FIRST_JOURNAL, Contents::default());
        writer.write(out, records, true, Purpose::Nothing);
        let restart = Restart { base, hard, entries: Vec::new(), life, whole: true, journal: FIRST_JOURNAL };
        Member::new(config, restart, writer)
    }

    /// A member that has read its journal.
    pub(crate) fn restart(config: &Config, out: &mut Outputs, mut restart: Restart) -> Result<Member, End> {
        restart.life += 1;
        let held = restart.held();
        let written = held
            .contents_at(held.last(), restart.hard.commit)
            .map_err(|_| End::Failed("an entry cannot be read".into()))?;
        let mut writer = Writer::new(restart.journal, written);
        let (life, whole) = (restart.life, restart.whole);
        let records = opening(config, restart.base.clone(), (life, whole), restart.hard.clone());
        // A journal that was cut still has what was lost: a new one begins.
        let records = with_entries(records, &held, restart.hard.commit).map_err(unreadable)?;
        writer.begin_journal(out, records);
        Member::new(config, restart, writer)
    }

    fn new(config: &Config, restart: Restart, writer: Writer) -> Result<Member, End> {
        let (id, executed) = (restart.base.id, restart.hard.commit);
        // The first life of a member has promised nothing to anybody.
        let promised = if restart.life == 1 { 0 } else { promised(config) };
        let trust = Trust::new(mix(config.seed) | 1, restart.life, restart.whole, promised);
        let raw = engine(config, id, restart.held())?;
        let mut member = Member {
            id,
            raw,
            writer,
            after: VecDeque::new(),
            steps_before: 0,
            last_step: 0,
            executed,
            leading: None,
            trust,
            votes: Votes::default(),
            fetching: None,
            found_spoiled: None,
            damage: None,
            verifying: Verifying::default(),
            taking_over: None,
            serving: Serving::default(),
            ticks: 0,
            closing: false,
        };
        draw_timeout(config, &mut member.raw);
        Ok(member)
    }

    pub(crate) fn has_partition(&self) -> bool {
        self.leading.as_ref().is_some_and(|leading| leading.has_partition())
    }

    fn last(&self) -> Last {
        let held = self.raw.store();
        let index = held.last();
        (held.term_of(index).unwrap_or(0), index)
    }

    // Inputs.

    pub(crate) fn on_tick(&mut self, config: &Config, out: &mut Outputs, now_us: u64) -> Result<(), End> {
        self.ticks += 1;
        self.trust.on_tick();
        // The engine expects no election before it knows that it has the directory.
        let has_all = self.taking_over.is_none() && !self.writer.begins_anew();
        let may_stand = self.trust.may_vote_for(self.last()) && has_all;
        if may_stand || self.leading.is_some() {
            self.raw.tick();
        }
        let alone = self.raw.raft.leader_id == 0 || !self.trust.is_whole() || !self.is_member();
        let pace = if alone { HELLO_TICKS } else { SLOW_HELLO_TICKS };
        if self.ticks == 1 || self.ticks % pace == 0 {
            self.greet(config, out);
        }
        if let Some(Step::Failed) = self.fetching.as_mut().map(|fetching| fetching.on_tick(config, out)) {
            self.abandon_fetching(out)?;
        }
        let given_up = self.serving.on_tick(&mut self.writer, out);
        given_up.into_iter().for_each(|id| self.raw.report_snapshot(id, SnapshotStatus::Failure));
        if self.ticks % MEMBERS_TICKS == 0 {
            let due = self.ticks % (10 * MEMBERS_TICKS) == 0;
            if let Some(leading) = &mut self.leading {
                members::look(config, &mut self.raw, leading, out, &self.trust, due);
            }
            self.leave_if_damaged()?;
        }
        if let Some(leading) = &mut self.leading {
            leading.on_tick(&self.raw);
            leading.ask_again(config, &mut self.raw, now_us);
        }
        self.go_on(config, out)
    }

    pub(crate) fn on_message(
        &mut self,
        config: &Config,
        out: &mut Outputs,
        node: u16,
        message: ReplicaMessage,
    ) -> Result<(), End> {
        match message {
            ReplicaMessage::Hello(hello) => self.on_hello(config, out, node, &hello)?,
            ReplicaMessage::Raft(message) => {
                if message.to != self.id || node_of(message.from) != node {
                    return Ok(());
                }
                self.on_engine(config, out, node, *message)?;
            }
            ReplicaMessage::Resume { life, index } => {
                let leader = self.raw.raft.leader_id;
                if leader != raft::INVALID_ID && node_of(leader) == node {
                    self.trust.on_resume(life, index);
                }
            }
            ReplicaMessage::Admit { .. } | ReplicaMessage::Invite | ReplicaMessage::Dismiss { .. } => {}
            // Had it taken part under a later leader, who knows this name, it would have that leader's term.
            ReplicaMessage::Stranger { id, term } => {
                let is_news = id == self.id && term >= self.raw.raft.term && self.leading.is_none();
                if is_news && !self.closing {
                    return Err(End::GivenUp("the group has no member by its name".into()));
                }
            }
            ReplicaMessage::Fetch { index, file, offset, length } => {
                if !self.serving.on_fetch(out, node, index, file, offset, length) {
                    out.send(node, &ReplicaMessage::Gone { index });
                }
            }
            ReplicaMessage::Chunk { index, file, offset, bytes } => {
                self.on_chunk(config, out, (node, index), (file, offset), &bytes)?;
            }
            ReplicaMessage::Spoiled { file } => self.verify(config, out, [file].into()),
            ReplicaMessage::Gone { index } => {
                if self.fetching.as_ref().is_some_and(|fetching| fetching.is_of(node, index)) {
                    self.abandon_fetching(out)?;
                }
            }
        }
        self.go_on(config, out)
    }

    pub(crate) fn on_disk(
        &mut self,
        config: &Config,
        out: &mut Outputs,
        purpose: Purpose,
        done: DiskDone,
    ) -> Result<(), End> {
        match (purpose, done) {
            (Purpose::Step(number), _) if self.writer.on_done(number) => self.on_durable(out),
            (Purpose::Partition, done) if self.has_partition() => {
                if let DiskDone::Failed { op, file, reason, .. } = &done {
                    self.note_damage(out, failure_words(op, *file, reason));
                }
                out.push(Output::Done(hide(done)));
            }
            (Purpose::Verifying, done) => self.on_verified(config, out, &done),
            (Purpose::Fetch { node, index, file, offset }, DiskDone::Read { bytes, .. }) => {
                out.send(node, &ReplicaMessage::Chunk { index, file, offset, bytes });
            }
            (Purpose::Closing, _) => return Err(End::Closed),
            _ => {}
        }
        self.go_on(config, out)
    }

    pub(crate) fn on_request(&mut self, config: &Config, out: &mut Outputs, op: DiskOp) -> Result<(), End> {
        let Some(leading) = &mut self.leading else { return Ok(()) };
        leading.request(config, &mut self.raw, out, op);
        self.go_on(config, out)
    }

    pub(crate) fn confirm(
        &mut self,
        config: &Config,
        out: &mut Outputs,
        now_us: u64,
        number: u64,
    ) -> Result<(), End> {
        let Some(leading) = &mut self.leading else { return Ok(()) };
        leading.confirm(config, &mut self.raw, out, now_us, number);
        self.go_on(config, out)
    }

    pub(crate) fn shut_down(&mut self, out: &mut Outputs) {
        self.closing = true;
        self.writer.close(out);
    }

    /// The member that has most takes the lead.
    pub(crate) fn hand_over(&mut self, config: &Config, out: &mut Outputs) -> Result<(), End> {
        if let Some(leading) = &mut self.leading {
            members::hand_over(&mut self.raw, leading, &self.trust);
        }
        self.go_on(config, out)
    }

    /// A replica is to move. What comes of it comes with the next ticks.
    pub(crate) fn on_wish(&mut self, wish: Move) -> Result<(), Refusal> {
        let leading =
            self.leading.as_mut().filter(|leading| leading.is_current()).ok_or(Refusal::LeadsNot)?;
        leading.moving.on_wish(&self.raw, wish)
    }

    /// The group, if this member leads it.
    pub(crate) fn term(&self) -> u64 {
        self.raw.raft.term
    }

    pub(crate) fn report(&self) -> Option<Report> {
        let leading = self.leading.as_ref().filter(|leading| leading.is_current())?;
        Some(moving::report(&self.raw, |id| leading.is_heard(&self.raw, id)))
    }

    // Who the others are.

    fn hello(&self, config: &Config, of: u16) -> Hello {
        let last = self.last();
        let fresh = last == (1, 1) && self.raw.raft.term == 1;
        let (id, plan) = (Some(self.id), config.plan());
        let own = Hello { id, last, fresh, votes: self.has_vote(), plan, ..Hello::default() };
        self.trust.hello(of, own)
    }

    fn has_vote(&self) -> bool {
        self.raw.raft.prs().conf().voters().contains(self.id)
    }

    fn is_member(&self) -> bool {
        self.raw.raft.prs().get(self.id).is_some()
    }

    /// The nodes of the other members with a vote.
    fn other_voters(&self) -> Vec<u16> {
        let voters = self.raw.raft.prs().conf().voters().ids();
        let others = voters.iter().filter(|id| *id != self.id).map(node_of);
        others.collect()
    }

    fn greet(&self, config: &Config, out: &mut Outputs) {
        for node in config.others() {
            out.send(node, &ReplicaMessage::Hello(self.hello(config, node)));
        }
    }

    fn on_hello(&mut self, config: &Config, out: &mut Outputs, node: u16, hello: &Hello) -> Result<(), End> {
        let own = if self.has_vote() { self.last() } else { Last::default() };
        self.trust.on_hello(&self.other_voters(), node, hello, own);
        answer(out, node, hello, self.hello(config, node));
        let last_index = self.raw.store().last();
        let Some(leading) = &mut self.leading else { return Ok(()) };
        let Some(id) = hello.id else {
            // A node without a replica says so, and is nobody to be admitted.
            if hello.nonce != 0 {
                members::admit(&mut self.raw, leading, out, node, hello.nonce);
            }
            return Ok(());
        };
        if leading.is_current() && self.raw.raft.prs().get(id).is_none() {
            // It was admitted twice, and took the first name; or its first admission was lost.
            let term = leading.term();
            out.send(node, &ReplicaMessage::Stranger { id, term });
            return Ok(());
        }
        if leading.is_new_life(id, hello.life) {
            // It may have less than it acknowledged in an earlier life.
            if let Some(progress) = self.raw.raft.mut_prs().get_mut(id) {
                progress.become_probe();
                progress.matched = 0;
                progress.next_idx = last_index + 1;
                progress.pending_snapshot = 0;
            }
        }
        // Before its epoch is committed, a leader does not know that it has everything.
        if hello.suspended && !leading.needs_epoch() {
            let index = last_index;
            self.raw.read_index(Question::Resume { node, life: hello.life, index }.encode());
        }
        Ok(())
    }

    // The consensus engine.

    fn on_engine(
        &mut self,
        config: &Config,
        out: &mut Outputs,
        node: u16,
        mut message: eraftpb::Message,
    ) -> Result<(), End> {
        let kind = message.get_msg_type();
        if kind == MessageType::MsgHeartbeat {
            // The leader may believe in what this replica had before its power failed.
            message.commit = message.commit.min(self.raw.store().last());
        }
        match kind {
            MessageType::MsgRequestVote | MessageType::MsgRequestPreVote => {
                if !self.trust.may_vote_for((message.log_term, message.index)) {
                    return Ok(());
                }
                if !self.trust.is_whole() {
                    // The candidate may have started anew since it was told.
                    out.send(node, &ReplicaMessage::Hello(self.hello(config, node)));
                }
            }
            MessageType::MsgRequestVoteResponse
                if election::is_whole_vote(&message) && self.trust.is_known_whole(node) =>
            {
                self.votes.note(message.term, message.from);
            }
            MessageType::MsgTimeoutNow if !self.trust.is_whole() || self.writer.begins_anew() => {
                return Ok(());
            }
            MessageType::MsgAppend | MessageType::MsgSnapshot if message.term < self.raw.raft.term => {}
            MessageType::MsgAppend if self.fetching.is_some() => {
                // The leader is another one, or has changed its mind: what was fetched is not part of any log yet.
                self.abandon_fetching(out)?;
            }
            MessageType::MsgSnapshot => {
                let metadata = message.get_snapshot().get_metadata();
                let (index, term) = (metadata.index, metadata.term);
                let log = &self.raw.raft.raft_log;
                let is_news = index > log.committed && !log.match_term(index, term);
                if is_news {
                    return self.begin_fetching(config, out, node, message);
                }
            }
            _ => {}
        }
        self.step(config, message)
    }

    fn step(&mut self, config: &Config, message: eraftpb::Message) -> Result<(), End> {
        let term = self.raw.raft.term;
        match self.raw.step(message) {
            Ok(()) | Err(raft::Error::StepPeerNotFound | raft::Error::ProposalDropped) => {}
            Err(raft::Error::StepLocalMsg) => {}
            Err(error) => return Err(engine_failed(error)),
        }
        if self.raw.raft.term != term {
            draw_timeout(config, &mut self.raw);
            self.trust.forget_resumption();
        }
        Ok(())
    }

    /// Everything that the engine wants done.
    fn go_on(&mut self, config: &Config, out: &mut Outputs) -> Result<(), End> {
        if self.closing {
            return Ok(());
        }
        loop {
            self.note_role(out);
            if !self.raw.has_ready() {
                break;
            }
            let mut ready = self.raw.ready();
            self.send(out, ready.take_messages());
            self.answer_questions(config, out, ready.take_read_states());
            let committed = ready.take_committed_entries();
            let applied = committed.last().map(|entry| entry.index);
            self.apply(config, out, committed)?;
            let number = self.steps_before + ready.number();
            self.last_step = number;
            if !ready.snapshot().is_empty() {
                let (metadata, data) = (ready.snapshot().get_metadata(), ready.snapshot().data.clone());
                self.take_over(config, out, number, metadata.clone(), data)?;
            } else {
                let entries = ready.take_entries();
                self.write(config, out, number, ready.hs(), entries)?;
            }
            self.after.push_back((number, ready.take_persisted_messages()));
            self.raw.advance_append_async(ready);
            if let Some(applied) = applied {
                self.raw.advance_apply_to(applied);
            }
            self.on_durable(out);
            draw_timeout(config, &mut self.raw);
            self.trust_again(config, out);
            if let Some(leading) = &mut self.leading {
                leading.begin_partition(&mut self.raw, out);
                leading.propose_waiting(config, &mut self.raw, out);
            }
        }
        self.rotate(config, out)
    }

    /// Steps are durable: others may hear of them.
    fn on_durable(&mut self, out: &mut Outputs) {
        while let Some((number, _)) = self.after.front() {
            if !self.writer.is_durable(*number) {
                break;
            }
            let (number, messages) = self.after.pop_front().unwrap_or_default();
            self.raw.on_persist_ready(number - self.steps_before);
            if let Some((_, index)) = self.taking_over.take_if(|(step, _)| *step <= number) {
                self.raw.advance_apply_to(index);
            }
            self.send(out, messages);
        }
    }

    fn send(&mut self, out: &mut Outputs, messages: Vec<eraftpb::Message>) {
        for mut message in messages {
            if !is_exchanged(&message) {
                continue;
            }
            election::mark_vote(&mut message, &self.trust);
            let node = node_of(message.to);
            if message.get_msg_type() == MessageType::MsgSnapshot {
                let index = message.get_snapshot().get_metadata().index;
                self.serving.begin(node, message.to, index, &self.raw.store().contents);
            }
            out.send(node, &ReplicaMessage::Raft(Box::new(message)));
        }
    }

    fn answer_questions(&mut self, config: &Config, out: &mut Outputs, states: Vec<raft::ReadState>) {
        for state in states {
            match Question::decode(&state.request_ctx) {
                Some(Question::Partition { number, asked_us }) => {
                    if let Some(leading) = &mut self.leading {
                        leading.on_confirmed(config, out, number, asked_us);
                    }
                }
                Some(Question::Resume { node, life, index }) => {
                    out.send(node, &ReplicaMessage::Resume { life, index });
                }
                None => {}
            }
        }
    }

    /// Entries are committed.
    fn apply(&mut self, config: &Config, out: &mut Outputs, entries: Vec<Entry>) -> Result<(), End> {
        for entry in entries {
            let (index, term) = (entry.index, entry.term);
            if entry.get_entry_type() != EntryType::EntryNormal {
                self.apply_members(out, &entry)?;
            } else if let Some(operation) = operation_of(&entry).map_err(unreadable)? {
                self.execute(out, index, &operation);
                self.raw.mut_store().contents.apply(&operation);
                if let Some(leading) = &mut self.leading {
                    leading.on_committed(out, term, &operation);
                }
            }
            self.executed = self.executed.max(index);
            self.raw.mut_store().applied = (index, term);
            self.leading.iter_mut().for_each(|leading| leading.note_applied(term));
        }
        let applied = self.raw.store().applied.0;
        self.raw.mut_store().forget(applied, config.tuning.held_bytes);
        Ok(())
    }

    /// Takes bytes away, unless that was done already.
    fn execute(&mut self, out: &mut Outputs, index: u64, operation: &Operation) {
        if index <= self.executed || operation.takes_away().is_none() {
            return;
        }
        // A start must know that this is committed: it would miss the bytes otherwise.
        let hard = self.lasting(self.raw.raft.hard_state(), index);
        self.writer.write(out, vec![Record::Hard(hard)], true, Purpose::Nothing);
        self.serving.note_taken_away(operation);
        match operation {
            Operation::Delete { file } if self.serving.keeps(*file) => self.writer.forget(*file),
            operation => self.writer.take_away(out, operation),
        }
    }

    fn apply_members(&mut self, out: &mut Outputs, entry: &Entry) -> Result<(), End> {
        let mut change = ConfChangeV2::new();
        if entry.get_entry_type() == EntryType::EntryConfChange {
            return Err(End::Failed("a change of members of an old kind".into()));
        }
        change.merge_from_bytes(&entry.data).map_err(|_| unreadable(Malformed))?;
        let members = self.raw.apply_conf_change(&change).map_err(engine_failed)?;
        self.raw.mut_store().members = members.clone();
        // That this is committed must not be lost with the power of all who know it: the members of before would be
        // asked for, and may be gone.
        let hard = self.lasting(self.raw.raft.hard_state(), entry.index);
        let records = vec![Record::Members { index: entry.index, members }, Record::Hard(hard)];
        self.writer.write(out, records, true, Purpose::Nothing);
        if self.raw.raft.state == StateRole::Leader && !self.is_member() {
            // It was elected while an earlier leader's change took it out. The engine ends the process if it goes on.
            let term = self.raw.raft.term;
            self.raw.raft.become_follower(term, raft::INVALID_ID);
        }
        Ok(())
    }

    /// Entries are written: what they append to their files, what they are to the journal.
    fn write(
        &mut self,
        config: &Config,
        out: &mut Outputs,
        number: u64,
        hard: Option<&HardState>,
        entries: Vec<Entry>,
    ) -> Result<(), End> {
        let (old_hard, mut records) = (self.raw.store().hard.clone(), Vec::new());
        let mut syncs =
            config.always && !entries.is_empty() && Rule::ReplicasSyncBeforeTheyAcknowledge.holds();
        if let Some(hard) = hard {
            let is_promise = (hard.term, hard.vote) != (old_hard.term, old_hard.vote);
            syncs |= is_promise;
            if is_promise || !entries.is_empty() {
                records.push(Record::Hard(self.lasting(hard.clone(), 0)));
            }
            self.raw.mut_store().hard = hard.clone();
        }
        if let Some(first) = entries.first().filter(|first| first.index <= self.raw.store().last()) {
            let last = first.index - 1;
            self.raw.mut_store().cut(last);
            let contents = self.raw.store().contents_at(last, self.executed).map_err(unreadable)?;
            self.writer.cut(out, contents);
        }
        for entry in entries {
            let operation = operation_of(&entry).map_err(unreadable)?;
            if let Some(Operation::Append { file, .. }) = &operation {
                self.execute_before(out, entry.index, *file, &mut records)?;
                self.serving.let_go(*file, &mut self.writer, out);
            }
            records.push(self.writer.append(out, &entry, operation.as_ref()));
            // Who the members are must not be lost with the power of a majority: those of before may be gone for good.
            let is_about_members = entry.get_entry_type() != EntryType::EntryNormal;
            let asks = matches!(operation, Some(Operation::Sync { .. } | Operation::Epoch(_)));
            syncs |= (is_about_members || asks) && Rule::ReplicasSyncBeforeTheyAcknowledge.holds();
            if let (Some(operation), false) = (&operation, Rule::TakeAwayWhatIsCommitted.holds()) {
                self.execute(out, entry.index, operation);
            }
            self.raw.mut_store().push(entry);
        }
        self.writer.write(out, records, syncs, Purpose::Step(number));
        Ok(())
    }

    /// Bytes are appended to a file of which bytes are taken away before: nobody proposes that before it is committed,
    /// so it can be carried out.
    fn execute_before(
        &mut self,
        out: &mut Outputs,
        index: u64,
        file: FileName,
        records: &mut Vec<Record>,
    ) -> Result<(), End> {
        let held = self.raw.store();
        let is_open = |entry: &&Entry| entry.index > self.executed && entry.index < index;
        let mut open = Vec::new();
        for entry in held.from(self.executed + 1).take_while(is_open) {
            let operation = operation_of(entry).map_err(unreadable)?;
            open.extend(operation.map(|operation| (entry.index, operation)));
        }
        let Some(last) = open.iter().rfind(|(_, operation)| operation.takes_away() == Some(file)) else {
            return Ok(());
        };
        let last = last.0;
        if last > self.raw.raft.raft_log.committed {
            return Err(End::Failed(format!("entry {index} appends to {file}, which is not committed yet")));
        }
        // The journal says that they are committed only when they and all before are durable here.
        self.writer.write(out, std::mem::take(records), true, Purpose::Nothing);
        self.writer.wait_for_syncs(out);
        for (index, operation) in open.into_iter().take_while(|(index, _)| *index <= last) {
            self.execute(out, index, &operation);
            self.executed = index;
        }
        Ok(())
    }

    /// In the journal only what is durable here is committed: such bytes that are missing after a start are damage.
    fn lasting(&self, mut hard: HardState, carried_out: u64) -> HardState {
        hard.commit = hard.commit.min(self.raw.raft.raft_log.persisted).max(carried_out);
        hard
    }

    fn rotate(&mut self, config: &Config, out: &mut Outputs) -> Result<(), End> {
        if !self.writer.is_long(config) || self.fetching.is_some() {
            return Ok(());
        }
        self.begin_journal(config, out)
    }

    fn begin_journal(&mut self, config: &Config, out: &mut Outputs) -> Result<(), End> {
        let held = self.raw.store();
        let (index, term) = held.applied;
        let base =
            Base { id: self.id, index, term, members: held.members.clone(), contents: held.contents.clone() };
        let hard = self.lasting(held.hard.clone(), index);
        let records = opening(config, base, (self.trust.life(), self.trust.is_whole()), hard);
        let records = with_entries(records, held, self.executed).map_err(unreadable)?;
        self.writer.begin_journal(out, records);
        Ok(())
    }

    /// A replica whose power failed has what a leader has confirmed: it counts again.
    fn trust_again(&mut self, config: &Config, out: &mut Outputs) {
        let leads = self.has_partition();
        if self.trust.resumes(self.raw.store().applied.0, leads) {
            self.writer.write(out, vec![Record::Whole], true, Purpose::Nothing);
            self.greet(config, out);
        }
    }
}

/// For how many ticks a leader that was just heard may rest on it that nobody else is elected.
fn promised(config: &Config) -> u32 {
    if config.lease { config.tuning.election_ticks as u32 } else { 0 }
}

fn unreadable(_: Malformed) -> End {
    End::Failed("an entry of the replicated log cannot be read".into())
}
