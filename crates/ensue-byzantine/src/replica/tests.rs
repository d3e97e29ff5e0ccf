//! Worlds of four or seven replicas: a seed draws how messages are lost, late and out of order, who is faulty and how,
//! and when correct replicas end and start again with what they kept. Then the network recovers, and all must finish.

use super::*;
use crate::block::{Block, RequestNumber, Session};
use crate::context::{SignedProposal, SignedVote};
use crate::keys::PublicKey;
use crate::limits::UNEXECUTED_MAX;
use crate::message::{proposal_bytes, vote_bytes};
use arc_malachitebft_core_types::{NilOrVal, Round, SignedMessage, VoteType};

const REQUESTS_A_SESSION: u64 = 6;
const SESSIONS: u32 = 3;
const CALM_FROM_US: u64 = 6_000_000;
const END_US: u64 = 240_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Says nothing.
    Silent,
    /// Proposes one block to some and another to others, and votes for a block and for none.
    TwoFaced,
    /// Sends what it has to say to one replica only.
    Whispers,
    /// Proposes another block in later rounds, as if a quorum had prevoted it in the first.
    FalseLock,
    /// Proposes in rounds in which others do.
    Usurps,
}

const FAULTS: [Fault; 5] = [Fault::Silent, Fault::TwoFaced, Fault::Whispers, Fault::FalseLock, Fault::Usurps];

#[derive(Clone, Copy, Debug)]
struct Shape {
    replicas: u32,
    faulty: u32,
    fault: Fault,
    loss_per_mille: u64,
    delay_us_max: u64,
    restarts: bool,
    /// Whether a replica that starts again has its records.
    remembers: bool,
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let hash = blake3::hash(&self.0.to_le_bytes());
        u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap()) % bound
    }
}

#[derive(Clone, Debug)]
enum Event {
    Message { from: Member, to: Member, bytes: Arc<[u8]> },
    Request { to: Member, request: Request },
    Answer { from: Member, answer: Answer },
    Tick(Member),
    Executed(Member),
    Resend(u32),
    Restart(Member),
}

#[derive(Default)]
struct Kept {
    blocks: Vec<Vec<u8>>,
    records: Vec<Vec<u8>>,
}

struct Machine {
    replica: Replica,
    kept: Kept,
    /// What its application did, and the hash of it all.
    executed: Vec<Vec<u8>>,
    state: [u8; 32],
    queue: VecDeque<Vec<u8>>,
    tick_us: u64,
}

/// Sequence numbers and responses.
type Heard = BTreeMap<Member, (u64, Vec<u8>)>;

struct World {
    seed: u64,
    shape: Shape,
    group: Arc<Group>,
    chance: Chance,
    now_us: u64,
    events: BTreeMap<(u64, u64), Event>,
    scheduled: u64,
    machines: Vec<Machine>,
    /// Of each session: which call, and who answered what.
    calls: Vec<(u64, Heard)>,
    /// What correct replicas voted.
    votes: BTreeMap<(Height, u32, VoteType, Member), NilOrVal<crate::block::BlockId>>,
    equivocated: bool,
    late: u64,
}

fn signer(member: u32) -> Signer {
    Signer::new(&[member as u8 + 1; 32])
}

fn client() -> Signer {
    Signer::new(&[200; 32])
}

fn group(replicas: u32) -> Arc<Group> {
    let keys: Vec<PublicKey> = (0..replicas).map(|member| signer(member).public()).collect();
    Arc::new(Group::new(keys, vec![client().public()]).unwrap())
}

fn machine(group: &Arc<Group>, member: u32) -> Machine {
    Machine {
        replica: Replica::new(Arc::clone(group), Member(member), signer(member)),
        kept: Kept::default(),
        executed: Vec::new(),
        state: [0; 32],
        queue: VecDeque::new(),
        tick_us: u64::MAX,
    }
}

impl World {
    fn new(seed: u64, shape: Shape) -> World {
        let group = group(shape.replicas);
        let mut world = World {
            seed,
            machines: (0..shape.replicas).map(|member| machine(&group, member)).collect(),
            group,
            shape,
            chance: Chance(seed << 32),
            now_us: 0,
            events: BTreeMap::new(),
            scheduled: 0,
            calls: vec![(1, BTreeMap::new()); SESSIONS as usize],
            votes: BTreeMap::new(),
            equivocated: false,
            late: 0,
        };
        for member in (0..shape.replicas).map(Member) {
            world.machine(member).replica.on_restored(0);
            world.carry_out(member);
        }
        (0..SESSIONS).for_each(|session| world.after(0, Event::Resend(session)));
        if shape.restarts {
            for _ in 0..4 {
                let member = Member(world.chance.below(u64::from(shape.replicas - shape.faulty)) as u32);
                let at_us = world.chance.below(CALM_FROM_US);
                world.after(at_us, Event::Restart(member));
            }
        }
        world
    }

    fn machine(&mut self, member: Member) -> &mut Machine {
        &mut self.machines[member.0 as usize]
    }

    fn is_faulty(&self, member: Member) -> bool {
        member.0 >= self.shape.replicas - self.shape.faulty
    }

    fn after(&mut self, delay_us: u64, event: Event) {
        self.scheduled += 1;
        self.events.insert((self.now_us + delay_us, self.scheduled), event);
    }

    fn send(&mut self, event: Event) {
        let is_calm = self.now_us >= CALM_FROM_US;
        let (loss, delay) =
            if is_calm { (0, 2_000) } else { (self.shape.loss_per_mille, self.shape.delay_us_max) };
        if self.chance.below(1000) >= loss {
            let delay_us = 50 + self.chance.below(delay);
            self.after(delay_us, event);
        }
    }

    fn is_done(&self) -> bool {
        self.calls.iter().all(|(call, _)| *call > REQUESTS_A_SESSION)
    }

    fn run(&mut self) {
        while let Some(((at_us, _), event)) = self.events.pop_first() {
            self.now_us = at_us;
            if self.is_done() || at_us > END_US {
                return;
            }
            self.step(event);
        }
    }

    fn step(&mut self, event: Event) {
        let now_us = self.now_us;
        match event {
            Event::Message { from, to, bytes } => {
                let message = Message::decode(&bytes).unwrap();
                self.machine(to).replica.on_message(now_us, from, message);
                self.carry_out(to);
            }
            Event::Request { to, request } => {
                self.machine(to).replica.on_request(now_us, request);
                self.carry_out(to);
            }
            Event::Tick(member) => {
                if self.machine(member).tick_us == now_us {
                    self.machine(member).tick_us = u64::MAX;
                    self.machine(member).replica.on_tick(now_us);
                    self.carry_out(member);
                }
            }
            Event::Executed(member) => self.execute(member),
            Event::Resend(session) => self.ask(session),
            Event::Answer { from, answer } => self.on_answer(from, &answer),
            Event::Restart(member) => self.restart(member),
        }
    }

    fn execute(&mut self, member: Member) {
        let now_us = self.now_us;
        let machine = self.machine(member);
        let Some(body) = machine.queue.pop_front() else { return };
        machine.state = *blake3::hash(&[&machine.state[..], &body].concat()).as_bytes();
        machine.executed.push(body);
        let response = machine.state[..8].into();
        machine.replica.on_executed(now_us, response);
        self.carry_out(member);
    }

    fn restart(&mut self, member: Member) {
        let (remembers, now_us, group) = (self.shape.remembers, self.now_us, Arc::clone(&self.group));
        let before = std::mem::replace(self.machine(member), machine(&group, member.0));
        let fresh = self.machine(member);
        fresh.kept = before.kept;
        if !remembers {
            fresh.kept.records.clear();
        }
        let (blocks, records) = (fresh.kept.blocks.clone(), fresh.kept.records.clone());
        blocks.iter().for_each(|record| fresh.replica.restore_block(record).unwrap());
        records.iter().for_each(|record| fresh.replica.restore_record(now_us, record).unwrap());
        fresh.replica.on_restored(now_us);
        self.carry_out(member);
    }

    fn ask(&mut self, session: u32) {
        let (call, _) = self.calls[session as usize];
        if call > REQUESTS_A_SESSION {
            return;
        }
        let session = Session { client: Member(0), number: session };
        let (number, body) =
            (RequestNumber { incarnation: 1, call }, format!("{}.{call}", session.number).into_bytes());
        let request = Request::sign(&self.group, &client(), session, number, body);
        for to in (0..self.shape.replicas).map(Member) {
            self.send(Event::Request { to, request: request.clone() });
        }
        self.after(300_000, Event::Resend(session.number));
    }

    fn on_answer(&mut self, from: Member, answer: &Answer) {
        let faults = self.group.faults_max();
        let (call, answers) = &mut self.calls[answer.session.number as usize];
        if answer.number.call != *call {
            return;
        }
        answers.insert(from, (answer.sequence, answer.response.to_vec()));
        let mine = &answers[&from];
        if answers.values().filter(|other| *other == mine).count() > faults {
            *call += 1;
            answers.clear();
            self.after(0, Event::Resend(answer.session.number));
        }
    }

    fn carry_out(&mut self, member: Member) {
        while let Some(output) = self.machine(member).replica.take_output() {
            match output {
                Output::Log(record) => self.machine(member).kept.records.push(record),
                Output::Decided { height, record } => {
                    let is_proved = Decided::decode(&record).unwrap().is_proved(&self.group);
                    assert!(is_proved, "seed {}: a replica that lags needs the proof", self.seed);
                    let kept = &mut self.machine(member).kept;
                    kept.blocks.push(record);
                    kept.records.clear();
                    assert_eq!(kept.blocks.len() as u64, height);
                }
                Output::Execute { body, .. } => {
                    self.machine(member).queue.push_back(body);
                    self.after(30, Event::Executed(member));
                }
                Output::Send { to, bytes } => self.carry(member, to, bytes),
                Output::Fetch { to, height } => {
                    let blocks = &self.machine(member).kept.blocks;
                    let (from, to_place) =
                        (height as usize - 1, height as usize - 1 + CATCH_UP_BLOCKS as usize);
                    let records = blocks[from..to_place.min(blocks.len())].to_vec();
                    for record in records {
                        let bytes = Message::bytes_of_decided(&record).into();
                        self.carry(member, to, bytes);
                    }
                }
                Output::Answer(answer) => self.send(Event::Answer { from: member, answer }),
            }
        }
        let deadline_us = self.machine(member).replica.next_deadline_us().max(self.now_us + 1);
        if deadline_us != self.machine(member).tick_us {
            self.machine(member).tick_us = deadline_us;
            self.after(deadline_us - self.now_us, Event::Tick(member));
        }
    }

    fn carry(&mut self, from: Member, to: Member, bytes: Arc<[u8]>) {
        if !self.is_faulty(from) {
            self.note(from, &bytes);
            return self.send(Event::Message { from, to, bytes });
        }
        if let (Fault::Usurps, Some(bytes)) = (self.shape.fault, self.usurping(from, &bytes)) {
            self.send(Event::Message { from, to, bytes });
        }
        let bytes = match self.shape.fault {
            Fault::Silent => return,
            Fault::Whispers if to.0 != 1 => return,
            Fault::TwoFaced if to.0.is_multiple_of(2) => self.other_face(from, &bytes),
            Fault::FalseLock => self.other_face(from, &bytes),
            Fault::Whispers | Fault::TwoFaced | Fault::Usurps => bytes,
        };
        self.send(Event::Message { from, to, bytes });
    }

    /// A proposal beside a vote.
    fn usurping(&self, from: Member, bytes: &[u8]) -> Option<Arc<[u8]>> {
        let Ok(Message(Said::Vote(vote))) = Message::decode(bytes) else { return None };
        let (height, round) = (vote.height, vote.round);
        let block = Block::new(from, Vec::new());
        let proposal =
            crate::context::Proposal { height, round, pol_round: Round::Nil, proposer: from, block };
        let signature = signer(from.0).sign(&proposal_bytes(&self.group, &proposal));
        Some(Message(Said::Proposal(SignedProposal::new(proposal, signature))).encode().into())
    }

    /// No correct replica may contradict itself.
    fn note(&mut self, from: Member, bytes: &[u8]) {
        let Ok(Message(Said::Vote(vote))) = Message::decode(bytes) else { return };
        if vote.voter == from {
            let place = (vote.height, vote.round.as_u32().unwrap(), vote.kind, from);
            let before = self.votes.entry(place).or_insert(vote.value);
            self.equivocated |= *before != vote.value;
        }
    }

    fn other_face(&self, from: Member, bytes: &[u8]) -> Arc<[u8]> {
        let said = match Message::decode(bytes).unwrap().0 {
            Said::Vote(vote) if vote.voter == from && self.shape.fault == Fault::TwoFaced => {
                let mut vote = vote.message;
                vote.value = NilOrVal::Nil;
                let signature = signer(from.0).sign(&vote_bytes(&self.group, &vote));
                Said::Vote(SignedVote::new(vote, signature))
            }
            Said::Proposal(proposal) if proposal.proposer == from => {
                let mut proposal = proposal.message;
                proposal.block = Block::new(from, proposal.block.requests().iter().rev().cloned().collect());
                if proposal.block.requests().len() < 2 {
                    proposal.block = Block::new(from, Vec::new());
                }
                if self.shape.fault == Fault::FalseLock && proposal.round > Round::ZERO {
                    proposal.pol_round = Round::ZERO;
                }
                let signature = signer(from.0).sign(&proposal_bytes(&self.group, &proposal));
                Said::Proposal(SignedProposal::new(proposal, signature))
            }
            other => other,
        };
        Message(said).encode().into()
    }

    fn judge(&mut self) {
        let correct = (self.shape.replicas - self.shape.faulty) as usize;
        let longest =
            self.machines[..correct].iter().map(|machine| &machine.executed).max_by_key(|list| list.len());
        let longest = longest.unwrap().clone();
        for machine in &self.machines[..correct] {
            assert_eq!(
                machine.executed[..],
                longest[..machine.executed.len()],
                "seed {}: two orders",
                self.seed
            );
            self.late += machine.replica.counts().late;
        }
        for session in 0..SESSIONS {
            let of = |body: &&Vec<u8>| body.starts_with(format!("{session}.").as_bytes());
            let calls: Vec<&Vec<u8>> = longest.iter().filter(of).collect();
            let expected: Vec<Vec<u8>> =
                (1..=REQUESTS_A_SESSION).map(|call| format!("{session}.{call}").into_bytes()).collect();
            assert_eq!(
                calls,
                expected[..calls.len()].iter().collect::<Vec<_>>(),
                "seed {}: each once, in its order",
                self.seed
            );
        }
        assert!(self.is_done(), "seed {}: no answers: {:?}, {:?}", self.seed, self.calls, self.shape);
    }
}

fn shape(seed: u64) -> Shape {
    let mut chance = Chance(seed << 8);
    let replicas = if chance.below(4) == 0 { 7 } else { 4 };
    Shape {
        replicas,
        faulty: (replicas - 1) / 3,
        fault: FAULTS[chance.below(5) as usize],
        loss_per_mille: [0, 10, 200][chance.below(3) as usize],
        delay_us_max: [500, 20_000, 600_000][chance.below(3) as usize],
        restarts: chance.below(2) == 0,
        remembers: true,
    }
}

#[test]
fn correct_replicas_execute_one_order_and_every_request_is_answered() {
    let mut late = 0;
    for seed in 0..60 {
        let mut world = World::new(seed, shape(seed));
        world.run();
        world.judge();
        assert!(!world.equivocated, "seed {seed}: a correct replica contradicts itself");
        late += world.late;
    }
    assert!(late > 0, "some blocks took more than one round");
}

#[test]
fn a_replica_that_forgets_its_records_votes_twice() {
    let forgets = |seed| {
        let shape = Shape {
            replicas: 4,
            faulty: 0,
            fault: Fault::Silent,
            loss_per_mille: 200,
            delay_us_max: 600_000,
            restarts: true,
            remembers: false,
        };
        let mut world = World::new(seed, shape);
        world.run();
        world.equivocated
    };
    assert!((0..60).any(forgets), "nothing is shown by worlds where records are kept");
}

#[test]
fn one_replica_alone_makes_nobody_begin_a_height() {
    let group = group(4);
    let mut replica = Replica::new(Arc::clone(&group), Member(0), signer(0));
    replica.on_restored(0);
    let vote = |voter: u32| {
        let kind = VoteType::Prevote;
        let round = Round::ZERO;
        let vote = crate::context::Vote {
            height: Height(1),
            round,
            kind,
            value: NilOrVal::Nil,
            voter: Member(voter),
        };
        let signature = signer(voter).sign(&vote_bytes(&group, &vote));
        Message(Said::Vote(SignedMessage::new(vote, signature)))
    };
    for _ in 0..10 {
        replica.on_message(0, Member(3), vote(3));
    }
    assert_eq!(replica.take_output(), None);
    replica.on_message(0, Member(2), vote(2));
    assert!(replica.take_output().is_some());
}

#[test]
fn a_request_that_no_client_signed_is_in_no_block() {
    let group = group(4);
    let mut replica = Replica::new(Arc::clone(&group), Member(0), signer(0));
    replica.on_restored(0);
    let session = Session { client: Member(0), number: 0 };
    let number = RequestNumber { incarnation: 1, call: 1 };
    let forged = Request::sign(&group, &signer(3), session, number, b"q".to_vec());
    replica.on_request(0, forged.clone());
    assert_eq!(replica.take_output(), None);
    let request = Request::sign(&group, &client(), session, number, b"q".to_vec());
    replica.on_request(0, request);
    let proposed = std::iter::from_fn(|| replica.take_output()).find_map(|output| match output {
        Output::Send { bytes, .. } => match Message::decode(&bytes).unwrap().0 {
            Said::Proposal(proposal) => Some(proposal.block.requests().len()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(proposed, Some(1));

    let mut other = Replica::new(Arc::clone(&group), Member(1), signer(1));
    other.on_restored(0);
    let proposal = crate::context::Proposal {
        height: Height(1),
        round: Round::ZERO,
        pol_round: Round::Nil,
        proposer: Member(0),
        block: Block::new(Member(0), vec![forged]),
    };
    let signature = signer(0).sign(&proposal_bytes(&group, &proposal));
    other.on_message(0, Member(0), Message(Said::Proposal(SignedMessage::new(proposal, signature))));
    other.on_message(0, Member(2), Message(Said::Status(Height(1))));
    let honest = Request::sign(&group, &client(), session, number, b"w".to_vec());
    other.on_request(0, honest);
    let votes: Vec<NilOrVal<crate::block::BlockId>> = std::iter::from_fn(|| other.take_output())
        .filter_map(|output| match output {
            Output::Send { bytes, .. } => match Message::decode(&bytes).unwrap().0 {
                Said::Vote(vote) => Some(vote.message.value),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(votes, [NilOrVal::Nil; 3], "a block with a forged request gets a vote for none");
}

/// A replica that has kept so many blocks, each of replica 0 and with so many requests.
fn restored(me: u32, blocks: u64, requests: u32) -> Replica {
    let mut replica = Replica::new(group(4), Member(me), signer(me));
    for height in 1..=blocks {
        let request = |number| Request {
            session: Session { client: Member(0), number },
            number: RequestNumber { incarnation: 1, call: height },
            body: Vec::new(),
            signature: client().sign(b""),
        };
        let block = Block::new(Member(0), (0..requests).map(request).collect());
        let decided = Decided { height: Height(height), round: Round::ZERO, block, precommits: Vec::new() };
        replica.restore_block(&decided.encode()).unwrap();
    }
    replica.on_restored(0);
    replica
}

fn proposes(replica: &mut Replica) -> bool {
    let session = Session { client: Member(0), number: 1_000 };
    let number = RequestNumber { incarnation: 1, call: 1 };
    replica.on_request(0, Request::sign(&group(4), &client(), session, number, b"q".to_vec()));
    has_proposed(replica)
}

fn has_proposed(replica: &mut Replica) -> bool {
    let is_proposal = |output| {
        let Output::Send { bytes, .. } = output else { return false };
        matches!(Message::decode(&bytes), Ok(Message(Said::Proposal(_))))
    };
    let outputs: Vec<Output> = std::iter::from_fn(|| replica.take_output()).collect();
    outputs.into_iter().any(is_proposal)
}

#[test]
fn a_proposer_goes_on_until_its_turn_is_over() {
    assert!(proposes(&mut restored(0, HEIGHTS_A_PROPOSER - 1, 0)));
    assert!(!proposes(&mut restored(1, HEIGHTS_A_PROPOSER - 1, 0)));
    assert!(!proposes(&mut restored(0, HEIGHTS_A_PROPOSER, 0)));
    assert!(proposes(&mut restored(1, HEIGHTS_A_PROPOSER, 0)));
}

#[test]
fn a_replica_that_is_far_behind_with_executing_takes_no_part() {
    let requests = 128;
    let blocks = UNEXECUTED_MAX as u64 / u64::from(requests) + 1;
    let mut replica = restored(0, blocks, requests);
    assert!(!proposes(&mut replica));
    while replica.unexecuted() > UNEXECUTED_MAX {
        assert!(!has_proposed(&mut replica));
        replica.on_executed(0, [].into());
    }
    assert!(has_proposed(&mut replica), "it takes part again");
}

fn vote(group: &Group, voter: u32, round: u32) -> Message {
    let (kind, round) = (VoteType::Prevote, Round::new(round));
    let value = NilOrVal::Nil;
    let vote = crate::context::Vote { height: Height(1), round, kind, value, voter: Member(voter) };
    let signature = signer(voter).sign(&vote_bytes(group, &vote));
    Message(Said::Vote(SignedMessage::new(vote, signature)))
}

fn proposal(group: &Group, proposer: u32, round: u32, creator: u32) -> Message {
    let proposal = crate::context::Proposal {
        height: Height(1),
        round: Round::new(round),
        pol_round: Round::Nil,
        proposer: Member(proposer),
        block: Block::new(Member(creator), Vec::new()),
    };
    let signature = signer(proposer).sign(&proposal_bytes(group, &proposal));
    Message(Said::Proposal(SignedMessage::new(proposal, signature)))
}

/// Whether a replica voted for a block.
fn has_voted_for_a_block(replica: &mut Replica) -> bool {
    let is_for_a_block = |output| {
        let Output::Send { bytes, .. } = output else { return false };
        let Ok(Message(Said::Vote(vote))) = Message::decode(&bytes) else { return false };
        vote.message.value != NilOrVal::Nil
    };
    let outputs: Vec<Output> = std::iter::from_fn(|| replica.take_output()).collect();
    outputs.into_iter().any(is_for_a_block)
}

#[test]
fn a_lying_replica_displaces_nobodys_messages() {
    let group = group(4);
    let mut replica = Replica::new(Arc::clone(&group), Member(1), signer(1));
    replica.on_restored(0);
    for round in 0..5_000 {
        replica.on_message(0, Member(3), vote(&group, 3, round));
    }
    for creator in 0..40 {
        replica.on_message(0, Member(3), proposal(&group, 3, 3, creator));
    }
    assert_eq!(replica.take_output(), None);
    let held = &replica.held[&1];
    assert_eq!(held.messages.len(), HELD_MESSAGES_MAX, "of one sender");
    // Passed on by the next one, too: it is held once.
    for from in [0, 2] {
        replica.on_message(0, Member(from), proposal(&group, 0, 0, 0));
    }
    assert!(has_voted_for_a_block(&mut replica), "it begins, and the proposal is there");
}

#[test]
fn a_proposal_of_a_round_far_ahead_is_not_kept() {
    let group = group(4);
    let logs = |round: u32| {
        let mut replica = Replica::new(Arc::clone(&group), Member(2), signer(2));
        replica.on_restored(0);
        replica.on_message(0, Member(0), vote(&group, 0, 0));
        replica.on_message(0, Member(3), vote(&group, 3, 0));
        while replica.take_output().is_some() {}
        replica.on_message(0, Member(1), proposal(&group, round % 4, round, 1));
        std::iter::from_fn(|| replica.take_output()).any(|output| matches!(output, Output::Log(_)))
    };
    assert!(logs(1), "of the next round");
    assert!(!logs(5) && !logs(9));
}

#[test]
fn blocks_are_not_sent_again_and_again_to_one_that_asks_for_the_same() {
    let mut replica = restored(0, 40, 0);
    let mut sent = |now_us: u64, from: u32, height: u64| {
        replica.on_message(now_us, Member(from), Message(Said::Status(Height(height))));
        std::iter::from_fn(|| replica.take_output())
            .filter(|output| matches!(output, Output::Fetch { .. }))
            .count()
    };
    let begin_us = 1_000_000;
    assert_eq!(sent(begin_us, 1, 1), 1);
    assert_eq!((1..100).map(|step| sent(begin_us + step * 2_000, 1, 1)).sum::<usize>(), 0, "the same");
    assert_eq!(sent(begin_us + 200_000, 2, 1), 1, "another replica");
    assert_eq!(sent(begin_us + 200_000, 1, 17), 1, "the next ones");
    assert_eq!(sent(begin_us + 200_000 + STATUS_US, 1, 17), 1, "they may be lost");
}
