//! Fingerprints of the keys of a side.
//!
//! A page of keys takes three or four round trips: what they are and when they expire, how large they are, and then the
//! small values together; large ones are read page by page, each key by itself. Held is one answer at a time.

use super::answer;
use super::digest::Secret;
use super::fingerprint::{Fingerprint, Seen};
use super::fold::Fold;
use super::kind::Kind;
use super::pages::{Pages, STRING_BYTES};
use super::side::Side;
use crate::import::target::{Words, words};
use bytes::Bytes;
use ensue_client::Reply;
use std::time::{SystemTime, UNIX_EPOCH};

/// Elements of a row that is read whole.
const WHOLE_ELEMENTS: u64 = 128;
/// What is asked for at once: a server holds answers that are not read yet.
const BATCH_BYTES: u64 = 4 << 20;
/// A guess of what an element takes there.
const ELEMENT_BYTES: u64 = 1 << 10;

/// What is looked at besides values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    pub(crate) deadlines: bool,
    pub(crate) field_deadlines: bool,
}

pub(crate) struct Reader {
    pub(crate) side: Side,
    pub(crate) secret: Secret,
    pub(crate) scope: Scope,
}

/// A key that is read.
enum Draft {
    Open(Open),
    Done(Seen),
}

struct Open {
    kind: Kind,
    deadline_ms: Option<u64>,
    size: u64,
}

impl Open {
    fn is_small(&self) -> bool {
        match self.kind {
            Kind::String => self.size <= STRING_BYTES,
            _ => self.size <= WHOLE_ELEMENTS,
        }
    }

    fn bytes(&self) -> u64 {
        match self.kind {
            Kind::String => self.size,
            Kind::Other(_) => BATCH_BYTES,
            _ => self.size * ELEMENT_BYTES,
        }
    }

    fn seen(self, fold: Fold) -> Seen {
        if fold.is_gone() {
            return Seen::Missing;
        }
        Seen::Row(Fingerprint {
            is_torn: self.kind.has_size() && fold.elements() != self.size,
            kind: self.kind,
            deadline_ms: self.deadline_ms,
            field_deadlines: fold.field_deadlines(),
            value: fold.value(),
        })
    }
}

/// What a command of a batch asks of its key.
#[derive(Clone, Copy)]
enum Part {
    Value,
    About,
    Groups,
}

impl Reader {
    /// What this side has of each key.
    pub(crate) fn read(&mut self, keys: &[Bytes]) -> anyhow::Result<Vec<Seen>> {
        let mut drafts = self.kinds(keys)?;
        self.sizes(keys, &mut drafts)?;
        let mut batch = Vec::new();
        let mut bytes = 0;
        for place in 0..keys.len() {
            let Draft::Open(open) = &drafts[place] else { continue };
            let more = open.bytes();
            if !open.is_small() {
                let fold = self.large(&keys[place], open.kind.clone())?;
                settle(&mut drafts[place], fold);
                continue;
            }
            if bytes + more > BATCH_BYTES {
                self.small(keys, &mut drafts, &std::mem::take(&mut batch))?;
                bytes = 0;
            }
            bytes += more;
            batch.push(place);
        }
        self.small(keys, &mut drafts, &batch)?;
        let seen = drafts.into_iter().map(|draft| match draft {
            Draft::Done(seen) => seen,
            Draft::Open(_) => Seen::Unreadable("it was not read".into()),
        });
        Ok(seen.collect())
    }

    fn kinds(&mut self, keys: &[Bytes]) -> anyhow::Result<Vec<Draft>> {
        let is_absolute = self.side.knows().deadlines;
        let question = if is_absolute { "PEXPIRETIME" } else { "PTTL" };
        let mut commands: Vec<Words> = keys.iter().map(|key| words!["TYPE", key.clone()]).collect();
        if self.scope.deadlines {
            commands.extend(keys.iter().map(|key| words![question, key.clone()]));
        }
        let begin_ms = if is_absolute { 0 } else { now_ms() };
        let mut drafts: Vec<Draft> = Vec::with_capacity(keys.len());
        self.side.each(&commands, |place, reply| {
            if place < keys.len() {
                drafts.push(draft(&reply));
                return;
            }
            let draft = &mut drafts[place - keys.len()];
            match (&mut *draft, answer::integer(&reply)) {
                (Draft::Open(open), Ok(time_ms)) => {
                    open.deadline_ms = u64::try_from(time_ms).ok().map(|time_ms| begin_ms + time_ms);
                }
                (Draft::Open(_), Err(words)) => *draft = Draft::Done(Seen::Unreadable(words)),
                (Draft::Done(_), _) => {}
            }
        })?;
        Ok(drafts)
    }

    fn sizes(&mut self, keys: &[Bytes], drafts: &mut [Draft]) -> anyhow::Result<()> {
        let (mut places, mut commands) = (Vec::new(), Vec::new());
        for (place, draft) in drafts.iter().enumerate() {
            let Draft::Open(open) = draft else { continue };
            if let Some(command) = open.kind.size(&keys[place]) {
                places.push(place);
                commands.push(command);
            }
        }
        self.side.each(&commands, |number, reply| {
            let draft = &mut drafts[places[number]];
            match (&mut *draft, answer::integer(&reply)) {
                (Draft::Open(open), Ok(size)) => open.size = u64::try_from(size).unwrap_or_default(),
                (_, Err(words)) => *draft = Draft::Done(Seen::Unreadable(words)),
                (Draft::Done(_), Ok(_)) => {}
            }
        })
    }

    /// Reads the values at these places whole.
    fn small(&mut self, keys: &[Bytes], drafts: &mut [Draft], places: &[usize]) -> anyhow::Result<()> {
        let (mut folds, mut parts, mut commands) = (Vec::new(), Vec::new(), Vec::new());
        for place in places {
            let Draft::Open(open) = &drafts[*place] else { continue };
            let (number, key) = (folds.len(), &keys[*place]);
            folds.push((*place, Ok(Fold::new(open.kind.clone(), &self.secret))));
            parts.push((number, Part::Value));
            commands.push(open.kind.whole(key));
            if open.kind == Kind::Stream {
                parts.extend([(number, Part::About), (number, Part::Groups)]);
                commands.extend(about(key));
            }
        }
        self.side.each(&commands, |answered, reply| {
            let (number, part) = parts[answered];
            let fold: &mut Result<Fold, String> = &mut folds[number].1;
            let Ok(open) = fold else { return };
            let added = match part {
                Part::Value => open.add_whole(&reply),
                Part::About => open.add_about(&reply),
                Part::Groups => open.add_groups(&reply),
            };
            if let Err(words) = added {
                *fold = Err(words);
            }
        })?;
        if self.scope.field_deadlines {
            self.field_deadlines(keys, &mut folds)?;
        }
        for (place, fold) in folds {
            settle(&mut drafts[place], fold);
        }
        Ok(())
    }

    fn field_deadlines(
        &mut self,
        keys: &[Bytes],
        folds: &mut [(usize, Result<Fold, String>)],
    ) -> anyhow::Result<()> {
        let (mut asked, mut commands) = (Vec::new(), Vec::new());
        for (number, (place, fold)) in folds.iter_mut().enumerate() {
            let names = fold.as_mut().map(Fold::take_names).unwrap_or_default();
            if !names.is_empty() {
                commands.push(field_deadlines_of(&keys[*place], &names));
                asked.push((number, names));
            }
        }
        self.side.each(&commands, |answered, reply| {
            let (number, names) = &asked[answered];
            let fold = &mut folds[*number].1;
            let Ok(open) = fold else { return };
            if let Err(words) = open.add_field_deadlines(names, &reply) {
                *fold = Err(words);
            }
        })
    }

    /// Reads a value page by page.
    fn large(&mut self, key: &Bytes, kind: Kind) -> anyhow::Result<Result<Fold, String>> {
        let mut pages = Pages::new(kind.clone(), key.clone());
        let mut fold = Fold::new(kind.clone(), &self.secret);
        while let Some(command) = pages.command() {
            let reply = self.side.run(&[command])?.pop().unwrap_or(Reply::Nil);
            if let Err(words) = pages.take(reply).and_then(|page| fold.add(&page)) {
                return Ok(Err(words));
            }
            let names = fold.take_names();
            if self.scope.field_deadlines && !names.is_empty() {
                let deadlines =
                    self.side.run(&[field_deadlines_of(key, &names)])?.pop().unwrap_or(Reply::Nil);
                if let Err(words) = fold.add_field_deadlines(&names, &deadlines) {
                    return Ok(Err(words));
                }
            }
        }
        if kind == Kind::Stream {
            let mut answers = self.side.run(&about(key))?.into_iter();
            let mut next = || answers.next().unwrap_or(Reply::Nil);
            if let Err(words) = fold.add_about(&next()).and_then(|()| fold.add_groups(&next())) {
                return Ok(Err(words));
            }
        }
        Ok(Ok(fold))
    }
}

/// What a key is.
fn draft(reply: &Reply) -> Draft {
    match reply {
        Reply::Status(name) => match Kind::named(name) {
            Some(kind) => Draft::Open(Open { kind, deadline_ms: None, size: 0 }),
            None => Draft::Done(Seen::Missing),
        },
        other => Draft::Done(Seen::Unreadable(answer::unexpected(other))),
    }
}

fn settle(draft: &mut Draft, fold: Result<Fold, String>) {
    let read = std::mem::replace(draft, Draft::Done(Seen::Missing));
    *draft = Draft::Done(match (read, fold) {
        (Draft::Open(open), Ok(fold)) => open.seen(fold),
        (Draft::Open(_), Err(words)) => Seen::Unreadable(words),
        (Draft::Done(seen), _) => seen,
    });
}

fn about(key: &Bytes) -> [Words; 2] {
    ["STREAM", "GROUPS"].map(|what| words!["XINFO", what, key.clone()])
}

/// What asks for the deadlines of these fields.
pub(crate) fn field_deadlines_of(key: &Bytes, names: &[Bytes]) -> Words {
    let mut command = words!["HPEXPIRETIME", key.clone(), "FIELDS", names.len().to_string()];
    command.extend(names.iter().cloned());
    command
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}
