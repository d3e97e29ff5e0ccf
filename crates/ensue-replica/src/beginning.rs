//! A replica without a directory: it begins the group together with all others that have none, or waits until a leader
//! has admitted it to the group that there is.
//!
//! A replica that had voted and lost its directory must not vote again by its name. So none begins alone: each waits
//! until all nodes that may have a replica have said, after its own start, that they have no directory or that nothing
//! has happened in it. All nodes, not the founders alone: the group may have moved away from those.

use crate::config::{Config, id_of, mix};
use crate::contents::Contents;
use crate::journal::{Base, Record};
use crate::message::{Hello, ReplicaMessage};
use crate::replica::{End, Outputs, answer};
use raft::eraftpb::ConfState;
use std::collections::BTreeMap;

/// The entry that the base of a new group stands for, and its term.
pub(crate) const FIRST: u64 = 1;
const HELLO_TICKS: u32 = 4;

/// What a new member writes first.
pub(crate) struct Begun {
    pub(crate) records: Vec<Record>,
    pub(crate) base: Base,
    pub(crate) life: u32,
}

#[derive(Debug)]
pub(crate) struct Beginning {
    nonce: u64,
    plan: u64,
    heard: BTreeMap<u16, Hello>,
    ticks: u32,
}

impl Beginning {
    pub(crate) fn new(config: &Config) -> Beginning {
        let (nonce, plan) = (mix(config.seed) | 1, config.plan());
        Beginning { nonce, plan, heard: BTreeMap::new(), ticks: 0 }
    }

    fn hello(&self, of: u16) -> Hello {
        let heard = self.heard.get(&of).map_or(0, |hello| hello.nonce);
        Hello { nonce: self.nonce, heard, plan: self.plan, ..Hello::default() }
    }

    pub(crate) fn on_tick(&mut self, config: &Config, out: &mut Outputs) {
        if self.ticks % HELLO_TICKS == 0 {
            for node in config.others() {
                out.send(node, &ReplicaMessage::Hello(self.hello(node)));
            }
        }
        self.ticks += 1;
    }

    pub(crate) fn on_message(
        &mut self,
        config: &Config,
        out: &mut Outputs,
        node: u16,
        message: ReplicaMessage,
    ) -> Result<Option<Begun>, End> {
        Ok(match message {
            ReplicaMessage::Hello(hello) => {
                self.heard.insert(node, hello.clone());
                answer(out, node, &hello, self.hello(node));
                self.begin_with_all(config)
            }
            ReplicaMessage::Admit { id, nonce } if nonce == self.nonce => {
                let members = ConfState::new();
                let base = Base { id, index: 0, term: 0, members, contents: Contents::default() };
                Some(begun(config, base))
            }
            ReplicaMessage::Dismiss { nonce } if nonce == self.nonce => return Err(End::Dismissed),
            _ => None,
        })
    }

    fn begin_with_all(&self, config: &Config) -> Option<Begun> {
        let is_new = |node: u16| {
            let hello = self.heard.get(&node);
            hello.is_some_and(|hello| {
                // Who is told of other founders would begin another group.
                hello.heard == self.nonce && hello.plan == self.plan && (hello.id.is_none() || hello.fresh)
            })
        };
        if !config.founders.contains(&config.node) || !config.others().all(is_new) {
            return None;
        }
        let mut members = ConfState::new();
        members.voters = config.founders.iter().map(|node| id_of(*node, 0)).collect();
        members.voters.sort_unstable();
        let id = id_of(config.node, 0);
        let base = Base { id, index: FIRST, term: FIRST, members, contents: Contents::default() };
        Some(begun(config, base))
    }
}

fn begun(config: &Config, base: Base) -> Begun {
    let life = 1;
    let records = vec![
        Record::Base(Box::new(base.clone())),
        Record::Start { life, boot_id: config.boot_id, whole: true },
    ];
    Begun { records, base, life }
}
