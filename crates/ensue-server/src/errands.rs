//! What sessions have done elsewhere: passwords compared and hashed, random bytes, the file of users.
//!
//! One thread a node does one errand after the other, so that passwords never take more than one processor from the
//! cores; each core has at most one for each of its sessions. The thread ends when the last core is gone.

use crate::inbox::{Inbox, Mail};
use crate::{secret, users};
use bytes::Bytes;
use ensue_node::{Errand, ErrandDone};
use ensue_types::SessionId;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Something to be done, and for whom.
#[derive(Debug)]
struct Job {
    inbox: Arc<Inbox>,
    session: SessionId,
    number: u64,
    errand: Errand,
}

/// The way to the thread, of one core.
#[derive(Clone, Debug)]
pub(crate) struct Errands {
    jobs: Sender<Job>,
}

impl Errands {
    /// Starts the thread of a node, which may have a file of users.
    pub(crate) fn start(users_file: Option<PathBuf>) -> io::Result<Errands> {
        let (jobs, arriving) = channel();
        let run = move || run(&arriving, users_file.as_deref());
        thread::Builder::new().name("ensue-errands".into()).spawn(run)?;
        Ok(Errands { jobs })
    }

    /// Has it done; the answer comes to this inbox.
    pub(crate) fn submit(&self, inbox: &Arc<Inbox>, session: SessionId, number: u64, errand: Errand) {
        let job = Job { inbox: Arc::clone(inbox), session, number, errand };
        self.jobs.send(job).expect("the thread runs as long as somebody can ask it");
    }
}

fn run(jobs: &Receiver<Job>, users_file: Option<&Path>) {
    while let Ok(Job { inbox, session, number, errand }) = jobs.recv() {
        // Without chance there are no salts: the session answers that it took too long.
        if let Some(done) = carry_out(errand, users_file) {
            inbox.post(Mail::ErrandDone { session, number, done });
        }
    }
}

fn carry_out(errand: Errand, users_file: Option<&Path>) -> Option<ErrandDone> {
    let mut has_chance = true;
    let draw = |bytes: &mut [u8]| {
        for piece in bytes.chunks_mut(32) {
            match secret::random() {
                Ok(random) => piece.copy_from_slice(&random[..piece.len()]),
                Err(_) => has_chance = false,
            }
        }
    };
    let done = match errand.run(draw) {
        Ok(done) => done,
        Err(Errand::SaveUsers(text)) => ErrandDone::Saved(saved(users_file, &text)),
        Err(_) => ErrandDone::Loaded(loaded(users_file)),
    };
    has_chance.then_some(done)
}

fn loaded(path: Option<&Path>) -> Result<Bytes, String> {
    let path = path.ok_or(NO_FILE)?;
    users::load(path).map(|users| users.save().into()).map_err(|error| error.to_string())
}

fn saved(path: Option<&Path>, text: &[u8]) -> Result<(), String> {
    let path = path.ok_or(NO_FILE)?;
    users::save(path, text).map_err(|error| error.to_string())
}

const NO_FILE: &str = "there is no file of users";
