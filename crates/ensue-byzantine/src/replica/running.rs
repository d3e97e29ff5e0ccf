//! One height that is being decided: the engine's driver, the votes and proposals that it was given, and its timers.
//!
//! - On a vote or a proposal: pass it to the driver if it is the first of its voter in its round, signed, of a round
//!   that is not too far ahead, and, if it is a proposal, of the proposer of its round. A proposal is judged here: the
//!   driver is told whether its block may be decided.
//! - On what the driver says: sign and send its votes and proposals, and give them to the driver itself; begin its next
//!   round; make a block of what waits; set its timers.
//! - Repeatedly: send what is known of this height again, whoever signed it. The algorithm needs that what one correct
//!   replica has received, all receive; a lying one may have sent its vote to one alone.
//!
//! Each input of the driver is logged before what follows from it is sent. A replica that starts again gives them to a
//! new driver, which says the same again: so no restart makes it vote twice. The driver remembers each vote for good,
//! which is why only one of each voter, kind and round reaches it.

use super::{Answers, Output, Pool};
use crate::block::{Block, Request};
use crate::codec::{Malformed, Reader, push_bytes};
use crate::context::{Agreement, Height, Proposal, SignedProposal, SignedVote, Validators, Vote};
use crate::keys::{Group, Member, Signature, Signer};
use crate::limits::{PROPOSALS_A_ROUND_MAX, PROPOSE_US, REPEAT_US, ROUNDS_AHEAD_MAX, VOTE_US};
use crate::message::{
    Decided, MESSAGE_BYTES_MAX, Message, Polka, Said, proposal_bytes, push_round, read_round, vote_bytes,
};
use arc_malachitebft_core_driver as engine;
use arc_malachitebft_core_types::{
    NilOrVal, PolkaCertificate, PolkaSignature, Round, SignedMessage, Timeout, TimeoutKind, Validity,
    VoteType,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

const STARTED: u8 = 1;
const HEARD: u8 = 2;
const PROPOSED: u8 = 3;
const ELAPSED: u8 = 4;

/// What a height may use of its replica.
pub(super) struct Cx<'a> {
    pub(super) now_us: u64,
    pub(super) group: &'a Group,
    pub(super) signer: &'a Signer,
    pub(super) me: Member,
    /// Who proposes in the first round.
    pub(super) first_proposer: Member,
    pub(super) pool: &'a Pool,
    pub(super) answers: &'a Answers,
    /// Whether inputs come from the log.
    pub(super) is_replayed: bool,
    pub(super) equivocations: &'a mut [u64],
    pub(super) outputs: &'a mut VecDeque<Output>,
}

impl Cx<'_> {
    fn proposer(&self, round: Round) -> Member {
        let replicas = self.group.replicas() as u64;
        let turn = u64::from(self.first_proposer.0) + u64::from(round.as_u32().unwrap_or_default());
        Member((turn % replicas) as u32)
    }

    fn send_all(&mut self, said: Said) {
        let bytes: Arc<[u8]> = Message(said).encode().into();
        for member in (0..self.group.replicas() as u32).map(Member).filter(|member| *member != self.me) {
            self.outputs.push_back(Output::Send { to: member, bytes: Arc::clone(&bytes) });
        }
    }

    fn log(&mut self, height: Height, kind: u8, payload: &[u8]) {
        if !self.is_replayed {
            let mut record = height.0.to_le_bytes().to_vec();
            record.push(kind);
            record.extend_from_slice(payload);
            self.outputs.push_back(Output::Log(record));
        }
    }
}

/// An input of the driver, as the log has it.
pub(super) enum Logged {
    Started,
    Heard(Said),
    Proposed(Round, Block),
    Elapsed(Timeout),
}

impl Logged {
    /// Reads a record that [`Cx::log`] made, with its height.
    pub(super) fn decode(record: &[u8]) -> Result<(Height, Logged), Malformed> {
        let mut reader = Reader(record);
        let height = Height(reader.u64()?);
        let logged = match reader.u8()? {
            STARTED => Logged::Started,
            HEARD => Logged::Heard(Message::decode(reader.bytes(MESSAGE_BYTES_MAX)?)?.0),
            PROPOSED => {
                let round = read_round(&mut reader)?;
                Logged::Proposed(round, Block::decode(reader.bytes(MESSAGE_BYTES_MAX)?)?)
            }
            ELAPSED => {
                let kind = match reader.u8()? {
                    0 => TimeoutKind::Propose,
                    1 => TimeoutKind::Prevote,
                    2 => TimeoutKind::Precommit,
                    _ => return Err(Malformed("an unknown timer")),
                };
                Logged::Elapsed(Timeout::new(read_round(&mut reader)?, kind))
            }
            _ => return Err(Malformed("an unknown record")),
        };
        reader.end()?;
        Ok((height, logged))
    }
}

pub(super) struct Running {
    height: Height,
    driver: engine::Driver<Agreement>,
    votes: BTreeMap<(u32, VoteType, Member), SignedVote>,
    proposals: BTreeMap<u32, Vec<SignedProposal>>,
    timers: Vec<(u64, Timeout)>,
    repeat_us: u64,
    /// The driver waits for a block of this round, and the log has none.
    owed: Option<Round>,
    decided: Option<Block>,
}

impl Running {
    /// Begins a height.
    pub(super) fn begin(cx: &mut Cx<'_>, height: Height) -> Running {
        let validators = Validators::of(cx.group);
        let thresholds = engine::ThresholdParams::default();
        let mut running = Running {
            height,
            driver: engine::Driver::new(Agreement, height, validators, cx.me, thresholds),
            votes: BTreeMap::new(),
            proposals: BTreeMap::new(),
            timers: Vec::new(),
            repeat_us: cx.now_us.saturating_add(REPEAT_US),
            owed: None,
            decided: None,
        };
        cx.log(height, STARTED, &[]);
        let proposer = cx.proposer(Round::ZERO);
        running.drive(cx, engine::Input::NewRound(height, Round::ZERO, proposer));
        running
    }

    /// A vote or a proposal of this height arrives.
    pub(super) fn on_said(&mut self, cx: &mut Cx<'_>, said: &Said) {
        match said {
            Said::Vote(vote) => self.on_vote(cx, vote),
            Said::Proposal(proposal) => self.on_proposal(cx, proposal),
            Said::Polka(polka) => self.on_polka(cx, polka),
            Said::Status(_) | Said::Decided(_) => {}
        }
    }

    /// An input of the log.
    pub(super) fn on_logged(&mut self, cx: &mut Cx<'_>, logged: Logged) {
        match logged {
            Logged::Started => {}
            Logged::Heard(said) => self.on_said(cx, &said),
            Logged::Proposed(round, block) => {
                self.owed = None;
                self.drive(cx, engine::Input::ProposeValue(round, block));
            }
            Logged::Elapsed(timeout) => self.drive(cx, engine::Input::TimeoutElapsed(timeout)),
        }
    }

    /// The log is at its end.
    pub(super) fn on_replayed(&mut self, cx: &mut Cx<'_>) {
        if let Some(round) = self.owed.take() {
            self.propose(cx, round);
        }
    }

    /// Time has passed.
    pub(super) fn on_tick(&mut self, cx: &mut Cx<'_>) {
        let round = self.driver.round();
        self.timers.retain(|(_, timeout)| timeout.round >= round);
        let (due, waiting) = self.timers.drain(..).partition(|(due_us, _)| *due_us <= cx.now_us);
        self.timers = waiting;
        let due: Vec<(u64, Timeout)> = due;
        for (_, timeout) in due {
            let mut payload = vec![match timeout.kind {
                TimeoutKind::Propose => 0,
                TimeoutKind::Prevote => 1,
                TimeoutKind::Precommit | TimeoutKind::Rebroadcast | TimeoutKind::FinalizeHeight(_) => 2,
            }];
            push_round(&mut payload, timeout.round);
            cx.log(self.height, ELAPSED, &payload);
            self.drive(cx, engine::Input::TimeoutElapsed(timeout));
        }
        if self.repeat_us <= cx.now_us {
            self.repeat_us = cx.now_us.saturating_add(REPEAT_US);
            self.repeat(cx);
        }
    }

    /// When [`Running::on_tick`] has something to do at the earliest.
    pub(super) fn next_deadline_us(&self) -> u64 {
        self.timers.iter().map(|(due_us, _)| *due_us).fold(self.repeat_us, u64::min)
    }

    /// The block that was decided, with its proof: precommits of a quorum in one round, which need not be the round
    /// that this replica is in.
    pub(super) fn decided(&self) -> Option<Decided> {
        let block = self.decided.clone()?;
        let value = NilOrVal::Val(block.hash());
        let mut rounds: BTreeMap<u32, Vec<(Member, Signature)>> = BTreeMap::new();
        for ((round, kind, voter), vote) in &self.votes {
            if *kind == VoteType::Precommit && vote.value == value {
                rounds.entry(*round).or_default().push((*voter, vote.signature));
            }
        }
        let (round, precommits) = rounds.into_iter().max_by_key(|(_, precommits)| precommits.len())?;
        Some(Decided { height: self.height, round: Round::new(round), block, precommits })
    }

    fn on_vote(&mut self, cx: &mut Cx<'_>, vote: &SignedVote) {
        let Some(round) = self.near(vote.round, ROUNDS_AHEAD_MAX) else { return };
        // A vote of its own that a replica does not know is one that it forgot with its disk, or a forgery.
        if vote.voter == cx.me {
            return;
        }
        let Some(key) = cx.group.replica(vote.voter) else { return };
        let place = (round, vote.kind, vote.voter);
        let known = self.votes.get(&place);
        if known.is_some_and(|known| known.value == vote.value)
            || !key.verifies(&vote_bytes(cx.group, vote), &vote.signature)
        {
            return;
        }
        if known.is_some() {
            cx.equivocations[vote.voter.0 as usize] += 1;
            return;
        }
        self.votes.insert(place, vote.clone());
        self.log_heard(cx, Said::Vote(vote.clone()));
        self.drive(cx, engine::Input::Vote(vote.clone()));
    }

    fn on_proposal(&mut self, cx: &mut Cx<'_>, proposal: &SignedProposal) {
        // A proposal is long, and is said again when its round has come: of later ones it would be kept for nothing.
        let Some(round) = self.near(proposal.round, 1) else { return };
        let is_in_turn = proposal.proposer == cx.proposer(proposal.round) && proposal.proposer != cx.me;
        let Some(key) = cx.group.replica(proposal.proposer) else { return };
        let known = self.proposals.get(&round).map(Vec::as_slice).unwrap_or_default();
        if !is_in_turn
            || (proposal.pol_round.is_defined() && proposal.pol_round >= proposal.round)
            || known.len() >= PROPOSALS_A_ROUND_MAX
            || known.iter().any(|known| known.message == proposal.message)
            || !key.verifies(&proposal_bytes(cx.group, proposal), &proposal.signature)
        {
            return;
        }
        cx.equivocations[proposal.proposer.0 as usize] += u64::from(!known.is_empty());
        self.proposals.entry(round).or_default().push(proposal.clone());
        self.log_heard(cx, Said::Proposal(proposal.clone()));
        let validity = Validity::from_bool(is_acceptable(cx, proposal));
        self.drive(cx, engine::Input::Proposal(proposal.clone(), validity));
    }

    /// A certificate is passed on whole, so one that this replica has already tells it nothing.
    fn on_polka(&mut self, cx: &mut Cx<'_>, polka: &Polka) {
        let is_known = self.driver.polka_certificate(polka.round, &polka.value).is_some();
        if self.near(polka.round, ROUNDS_AHEAD_MAX).is_none() || is_known || !polka.is_proved(cx.group) {
            return;
        }
        self.log_heard(cx, Said::Polka(polka.clone()));
        let signature =
            |(address, signature): &(Member, Signature)| PolkaSignature::new(*address, *signature);
        let certificate = PolkaCertificate {
            height: self.height,
            round: polka.round,
            value_id: polka.value,
            polka_signatures: polka.prevotes.iter().map(signature).collect(),
        };
        self.drive(cx, engine::Input::PolkaCertificate(certificate));
    }

    fn log_heard(&self, cx: &mut Cx<'_>, said: Said) {
        let mut payload = Vec::new();
        push_bytes(&mut payload, &Message(said).encode());
        cx.log(self.height, HEARD, &payload);
    }

    /// The number of a round that is not too far ahead.
    fn near(&self, round: Round, ahead_max: u32) -> Option<u32> {
        let present = self.driver.round().as_u32().unwrap_or_default();
        round.as_u32().filter(|round| *round <= present.saturating_add(ahead_max))
    }

    /// Gives the driver an input, and does what it says until it says nothing more, or has decided.
    fn drive(&mut self, cx: &mut Cx<'_>, input: engine::Input<Agreement>) {
        if self.decided.is_some() {
            return;
        }
        // The driver refuses what is of another height, which does not come here.
        let Ok(outputs) = self.driver.process(input) else { return };
        for output in outputs {
            match output {
                engine::Output::NewRound(height, round) => {
                    let proposer = cx.proposer(round);
                    self.drive(cx, engine::Input::NewRound(height, round, proposer));
                }
                engine::Output::Propose(proposal) => self.send_proposal(cx, proposal),
                engine::Output::Vote(vote) => self.send_vote(cx, vote),
                engine::Output::Decide(_, proposal) => self.decided = Some(proposal.block),
                engine::Output::ScheduleTimeout(timeout) => self.schedule(cx, timeout),
                engine::Output::GetValue(_, round, _) => self.propose(cx, round),
            }
        }
    }

    fn propose(&mut self, cx: &mut Cx<'_>, round: Round) {
        if cx.is_replayed {
            self.owed = Some(round);
            return;
        }
        let is_new = |request: &Request| cx.answers.is_new(request.session, request.number);
        let block = Block::new(cx.me, cx.pool.first().into_iter().filter(is_new).collect());
        let mut payload = Vec::new();
        push_round(&mut payload, round);
        push_bytes(&mut payload, block.bytes());
        cx.log(self.height, PROPOSED, &payload);
        self.drive(cx, engine::Input::ProposeValue(round, block));
    }

    fn send_proposal(&mut self, cx: &mut Cx<'_>, proposal: Proposal) {
        let signature = cx.signer.sign(&proposal_bytes(cx.group, &proposal));
        let proposal = SignedMessage::new(proposal, signature);
        let round = proposal.round.as_u32().unwrap_or_default();
        self.proposals.entry(round).or_default().push(proposal.clone());
        cx.send_all(Said::Proposal(proposal.clone()));
        self.drive(cx, engine::Input::Proposal(proposal, Validity::Valid));
    }

    fn send_vote(&mut self, cx: &mut Cx<'_>, vote: Vote) {
        let signature = cx.signer.sign(&vote_bytes(cx.group, &vote));
        let vote = SignedMessage::new(vote, signature);
        let round = vote.round.as_u32().unwrap_or_default();
        let before = self.votes.insert((round, vote.kind, cx.me), vote.clone());
        assert!(before.is_none_or(|before| before.value == vote.value), "a replica votes once in a round");
        cx.send_all(Said::Vote(vote.clone()));
        self.drive(cx, engine::Input::Vote(vote));
    }

    fn schedule(&mut self, cx: &Cx<'_>, timeout: Timeout) {
        let us = if timeout.kind == TimeoutKind::Propose { PROPOSE_US } else { VOTE_US };
        let rounds = u64::from(timeout.round.as_u32().unwrap_or_default()) + 1;
        if self.timers.iter().all(|(_, set)| *set != timeout) {
            self.timers.push((cx.now_us.saturating_add(us.saturating_mul(rounds)), timeout));
        }
    }

    /// The rounds that somebody may still need: this one and the one before, and that of a block that may be locked.
    fn repeat(&self, cx: &mut Cx<'_>) {
        let valid = self.driver.valid_value().and_then(|valid| valid.round.as_u32());
        let present = self.driver.round().as_u32().unwrap_or_default();
        let rounds: BTreeSet<u32> = [present.saturating_sub(1), present].into_iter().chain(valid).collect();
        for round in rounds {
            for proposal in self.proposals.get(&round).into_iter().flatten() {
                cx.send_all(Said::Proposal(proposal.clone()));
            }
            for certificate in
                self.driver.polka_certificates().iter().filter(|of| of.round.as_u32() == Some(round))
            {
                cx.send_all(Said::Polka(polka(certificate)));
            }
            for (_, vote) in self.votes.iter().filter(|((of, _, _), _)| *of == round) {
                cx.send_all(Said::Vote(vote.clone()));
            }
        }
    }
}

fn polka(certificate: &PolkaCertificate<Agreement>) -> Polka {
    let prevotes = certificate.polka_signatures.iter().map(|prevote| (prevote.address, prevote.signature));
    let mut prevotes: Vec<(Member, Signature)> = prevotes.collect();
    prevotes.sort();
    Polka { height: certificate.height, round: certificate.round, value: certificate.value_id, prevotes }
}

/// Whether a block may be decided. Every correct replica says the same at one height.
fn is_acceptable(cx: &Cx<'_>, proposal: &Proposal) -> bool {
    let creator = proposal.block.creator();
    let is_of_its_proposer = creator == proposal.proposer || proposal.pol_round.is_defined();
    let mut sessions = BTreeSet::new();
    is_of_its_proposer
        && cx.group.replica(creator).is_some()
        && proposal.block.requests().iter().all(|request| {
            sessions.insert(request.session)
                && cx.answers.is_new(request.session, request.number)
                && (cx.pool.has(request) || request.is_valid(cx.group))
        })
}
