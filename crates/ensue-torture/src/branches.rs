//! Clients of a keyspace with branches: sessions in all datacenters that read, write, begin, commit and merge, and ask
//! about states; what they said and were answered, as the oracle of the simulator judges it.
//!
//! What clients say is drawn as in simulated worlds, and judged by the same oracle (`ensue_sim::branching`): both know
//! only what clients are answered. A commit whose answer was lost may have happened or not; its session ends. Each
//! round has a keyspace of its own, which is empty when it begins, so that its history stands for itself.

use crate::cluster::DATACENTERS;
use crate::random::Random;
use crate::workload::Round;
use anyhow::{Context, Result, anyhow, bail};
use ensue_client::{Connection, Options};
use ensue_sim::branching::clients::{Open, REFUSALS, follow, remember};
use ensue_sim::branching::draw::Drawer;
use ensue_sim::branching::options::BranchOptions;
use ensue_sim::branching::record::Recording;
use ensue_sim::branching::rest;
use ensue_sim::oracle::history::SessionIndex;
use ensue_sim::protocols::with_branches;
use ensue_sim::random::Random as Chance;
use ensue_sim::resp::{Answer, args};
use ensue_types::{Args, DatacenterId, Reply};
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub const BRANCH_CLIENTS: usize = 4;
/// One a round. Rounds after these have no branches.
pub const BRANCH_KEYSPACES: RangeInclusive<u8> = 2..=15;
/// Keys of each kind: few, so that transactions conflict.
const KEYS: usize = 3;
/// Steps of a client in a round, at most about so many however long it is: what is judged grows faster than they do.
const STEPS_A_ROUND: u64 = 300;
/// Steps of a session before it goes, on average.
const STEPS_A_SESSION: u64 = 150;
/// Times in a thousand that a step goes to another datacenter with a token, and that it shows another session's.
const MOVE_RATE: u64 = 10;
const MERGE_RATE: u64 = 20;
const MERGE_TIMEOUT_MS: u64 = 500;
/// A transaction whose session has gone ends by this alone, and a round ends when all have.
const TRANSACTION_TIMEOUT_MS: u64 = 1_000;
/// Questions that are sent at once: their answers fit into the buffers of a connection.
const ASKED_AT_ONCE: usize = 64;

/// How the servers treat their branches: drawn once a run, because it is in their configuration.
#[derive(Clone, Copy, Debug)]
pub struct Treatment {
    /// States after which a datacenter places ceilings by itself; never if it is 0.
    pub ceiling_every: u64,
    pub is_optimistic: bool,
}

impl Treatment {
    pub fn draw(seed: u64) -> Treatment {
        let mut random = Random::stream(seed, "branches");
        let is_optimistic = random.percent(30);
        let ceiling_every = if random.percent(25) { 40 } else { 0 };
        Treatment { ceiling_every, is_optimistic }
    }

    /// Directives of every server.
    pub fn directives(self) -> String {
        let protocol = with_branches();
        let keyspaces = BRANCH_KEYSPACES.map(|keyspace| format!("keyspace {keyspace} protocol {protocol}\n"));
        let collection = if self.is_optimistic { "optimistic" } else { "pessimistic" };
        let directives = format!(
            "branch-collection {collection}\nbranch-ceiling-every {}\nbranch-transaction-timeout {}\n",
            self.ceiling_every, TRANSACTION_TIMEOUT_MS
        );
        keyspaces.collect::<String>() + &directives
    }
}

/// The branches of one round.
#[derive(Debug)]
pub struct Branches {
    keyspace: u8,
    ceiling_rate: u64,
    /// Between two steps of a client.
    think_us_max: u64,
    shared: Mutex<Shared>,
}

/// What the clients of a round share.
#[derive(Debug)]
struct Shared {
    recording: Recording,
    /// Ids that somebody was answered lately.
    ids: Vec<String>,
    tokens: Vec<Vec<u8>>,
}

impl Branches {
    /// Of this round, if there is still a keyspace for it.
    pub fn of(round: u64, length: Duration, treatment: Treatment, random: &mut Random) -> Option<Branches> {
        let number = usize::try_from(round).ok()?.checked_sub(1)?;
        let keyspace = BRANCH_KEYSPACES.clone().nth(number)?;
        let ceiling_rate = [0, 0, 10][random.index(3)];
        let options = BranchOptions {
            datacenters: DATACENTERS as u8,
            optimistic: treatment.is_optimistic,
            places_ceilings: treatment.ceiling_every > 0,
            transaction_timeout_ms: TRANSACTION_TIMEOUT_MS,
            ceiling_rate,
            ..BranchOptions::default()
        };
        let recording = Recording::new(options);
        let shared = Mutex::new(Shared { recording, ids: Vec::new(), tokens: Vec::new() });
        let think_us_max = 2 * length.as_micros() as u64 / STEPS_A_ROUND;
        Some(Branches { keyspace, ceiling_rate, think_us_max, shared })
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was recorded, with the datacenters of which a process was started again in the meantime.
    pub fn into_recording(self, restarted: impl IntoIterator<Item = usize>) -> Recording {
        let mut recording = self.shared.into_inner().unwrap_or_else(PoisonError::into_inner).recording;
        let restarted = restarted.into_iter().map(|datacenter| DatacenterId(datacenter as u8));
        recording.options.restarted = restarted.collect();
        recording
    }
}

/// A client, from session to session.
struct Life {
    client: usize,
    steps: u64,
    chance: Chance,
    datacenter: usize,
    /// Shown first in the next session.
    token: Option<Vec<u8>>,
}

/// One session on one connection.
struct Session<'a> {
    round: &'a Round,
    branches: &'a Branches,
    datacenter: usize,
    session: SessionIndex,
    connection: Connection,
    open: Option<Open>,
    /// When it asked something last.
    last_us: u64,
}

impl Round {
    /// The life of a client of branches, until the round is over.
    pub fn live_on_branches(&self, branches: &Branches, client: usize, mut random: Random) {
        let chance = Chance::stream(random.bits(), "client of branches");
        let mut life = Life { client, steps: 0, chance, datacenter: client % DATACENTERS, token: None };
        while !self.is_over() {
            let worked = Session::open(self, branches, life.datacenter, &mut life.chance)
                .and_then(|mut session| session.work(&mut life));
            if let (Err(error), false) = (worked, self.is_over()) {
                life.token = None;
                self.note_error(format!(
                    "client {client} of branches in dc{}: {error:#}",
                    life.datacenter + 1
                ));
                thread::sleep(Duration::from_millis(random.between(5, 100)));
            }
            if life.token.is_none() {
                life.datacenter = random.index(DATACENTERS);
            }
        }
    }

    /// Waits until all datacenters have the same leaves and nothing is unfinished, then reads everything at the leaves
    /// in each datacenter.
    pub fn settle_branches(&self, branches: &Branches, patience: Duration) -> Result<()> {
        let until = Instant::now() + patience;
        while let Some(why) = self.restless(branches)? {
            if Instant::now() > until {
                bail!("after {} s branches do not rest: {why}", patience.as_secs());
            }
            thread::sleep(Duration::from_millis(50));
        }
        let keys = {
            let mut shared = branches.shared();
            shared.recording.options.final_us = Some(self.recorder.now_us());
            rest::written_keys(&shared.recording.history)
        };
        for datacenter in 0..DATACENTERS {
            let mut chance = Chance::stream(0, "the last session");
            let mut session = Session::open(self, branches, datacenter, &mut chance)?;
            let found = session.say(vec![args("BRANCH LIST"), args("BRANCH LOG COUNT 0")])?;
            let questions = rest::questions(&keys, &found[0], branches.shared().recording.options.optimistic);
            for questions in questions.chunks(ASKED_AT_ONCE) {
                session.say(questions.to_vec())?;
            }
        }
        Ok(())
    }

    /// What differs between datacenters, or is not over yet. Nothing of this is recorded.
    fn restless(&self, branches: &Branches) -> Result<Option<String>> {
        let mut first: Option<[String; 2]> = None;
        for (datacenter, nodes) in self.places.iter().enumerate() {
            let options = Options { keyspace: branches.keyspace, ..nodes[0].clone() };
            let mut connection = Connection::open(&options)?;
            let mut ask = |text: &str| -> Result<Answer> {
                send(&mut connection, &args(text))?;
                answer_of(connection.receive()?)
            };
            let told = [ask("BRANCH LIST")?.to_string(), ask("BRANCH DIGEST LEAVES")?.to_string()];
            let info = ask("BRANCH INFO")?;
            if let Some(why) = rest::unfinished(&info) {
                return Ok(Some(format!("{why} in dc{}", datacenter + 1)));
            }
            let first = first.get_or_insert_with(|| told.clone());
            if *first != told {
                return Ok(Some(format!("{told:?} in dc{}, {first:?} in dc1", datacenter + 1)));
            }
        }
        Ok(None)
    }
}

impl<'a> Session<'a> {
    fn open(
        round: &'a Round,
        branches: &'a Branches,
        datacenter: usize,
        chance: &mut Chance,
    ) -> Result<Session<'a>> {
        let nodes = &round.places[datacenter];
        let node = nodes[chance.index(nodes.len())].clone();
        let connection = Connection::open(&Options { keyspace: branches.keyspace, ..node })?;
        let session = branches.shared().recording.history.session();
        Ok(Session { round, branches, datacenter, session, connection, open: None, last_us: 0 })
    }

    /// Works until something fails, the round is over, the session goes, or it takes its past to another place.
    fn work(&mut self, life: &mut Life) -> Result<()> {
        if let Some(token) = life.token.take() {
            self.show(token)?;
        }
        while !self.round.is_over() {
            life.steps += 1;
            if !self.step(life)? {
                break;
            }
            thread::sleep(Duration::from_micros(life.chance.between(0, self.branches.think_us_max)));
        }
        Ok(())
    }

    /// One step. False if the session ends with it.
    fn step(&mut self, life: &mut Life) -> Result<bool> {
        let is_free = self.open.is_none();
        if is_free && life.chance.chance(MOVE_RATE) {
            life.token = self.take_token()?;
            life.datacenter = life.chance.index(DATACENTERS);
            return Ok(false);
        }
        if is_free && life.chance.chance(MERGE_RATE) {
            let known = self.branches.shared().tokens.clone();
            if known.is_empty() || life.chance.chance(500) {
                let token = self.take_token()?;
                self.branches.shared().tokens.extend(token);
                return Ok(true);
            }
            self.show(known[life.chance.index(known.len())].clone())?;
            return Ok(true);
        }
        let ids = self.branches.shared().ids.clone();
        let mut drawer = Drawer {
            random: &mut life.chance,
            ids: &ids,
            keys: KEYS,
            ceiling_rate: self.branches.ceiling_rate,
            name: format!("{}-{}", life.client, life.steps),
            count: 0,
        };
        let draft = drawer.step(self.open.as_ref());
        if draft.leaves || life.chance.below(STEPS_A_SESSION) == 0 {
            return Ok(false);
        }
        self.say(draft.commands)?;
        Ok(true)
    }

    fn take_token(&mut self) -> Result<Option<Vec<u8>>> {
        let answers = self.say(vec![args("CAUSAL TOKEN")])?;
        Ok(answers.first().and_then(Answer::bytes).map(<[u8]>::to_vec))
    }

    fn show(&mut self, token: Vec<u8>) -> Result<()> {
        let mut merge = args("CAUSAL MERGE");
        merge.push(token.into());
        merge.extend(args(&format!("TIMEOUT {MERGE_TIMEOUT_MS}")));
        self.say(vec![merge, args("BRANCH SESSION")]).map(drop)
    }

    /// Sends commands at once and waits for all their answers. An error if one of them ends the session; all that came
    /// is written down before.
    fn say(&mut self, commands: Vec<Args>) -> Result<Vec<Answer>> {
        let asked_us = self.round.recorder.now_us();
        let datacenter = DatacenterId(self.datacenter as u8);
        let operation =
            self.branches.shared().recording.asked(self.session, datacenter, asked_us, commands.clone());
        for command in &commands {
            send(&mut self.connection, command)?;
        }
        let mut answers = Vec::new();
        for _ in &commands {
            let answer = answer_of(self.connection.receive()?)?;
            let mut shared = self.branches.shared();
            remember(&mut shared.ids, &answer);
            shared.recording.answered(operation, self.round.recorder.now_us(), answer.clone());
            answers.push(answer);
        }
        let mut failure = None;
        for (command, answer) in commands.iter().zip(&answers) {
            failure = failure.or(self.failure(command, answer));
            follow(&mut self.open, command, answer, asked_us);
        }
        self.last_us = asked_us;
        failure.map_or(Ok(answers), Err)
    }

    /// Why a session cannot go on: an error that is no part of a transaction's life.
    fn failure(&self, command: &Args, answer: &Answer) -> Option<anyhow::Error> {
        let error = answer.error()?;
        let is_merge = command.first().is_some_and(|word| &word[..] == b"CAUSAL");
        let idle_us = self.round.recorder.now_us() - self.last_us;
        let was_used = self.open.is_some() && idle_us < TRANSACTION_TIMEOUT_MS * 1_000;
        let is_lost = was_used && error.starts_with("NOTRANSACTION");
        let is_refusal = REFUSALS.iter().any(|refusal| error.starts_with(refusal));
        if (is_refusal || is_merge) && !is_lost {
            return None;
        }
        let words: Vec<_> = command.iter().map(|word| String::from_utf8_lossy(word)).collect();
        Some(anyhow!("{}: {error}", words.join(" ")))
    }
}

fn send(connection: &mut Connection, command: &Args) -> Result<()> {
    let words: Vec<&[u8]> = command.iter().map(|word| &word[..]).collect();
    connection.send(&words).context("sending")
}

/// The answer as the oracle reads it: of RESP2.
fn answer_of(reply: Reply) -> Result<Answer> {
    Ok(match reply {
        Reply::Status(words) => Answer::Status(words.into_owned()),
        Reply::Error(words) => Answer::Error(words.into_owned()),
        Reply::Integer(number) => Answer::Integer(number),
        Reply::Bulk(bytes) => Answer::Bulk(bytes.to_vec()),
        Reply::Nil | Reply::NilArray => Answer::Nil,
        Reply::Array(items) => Answer::Array(items.into_iter().map(answer_of).collect::<Result<_>>()?),
        other => bail!("no answer of RESP2: {other:?}"),
    })
}
