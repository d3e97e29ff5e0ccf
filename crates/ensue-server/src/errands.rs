//! What sessions have done elsewhere: passwords compared and hashed, random bytes, files of users, certificates and the
//! configuration, memory given back.
//!
//! One thread a node does one errand after the other, so that passwords never take more than one processor from the
//! cores. So many may wait; the next one comes back undone, so that who floods a node with wrong passwords fills no
//! memory. The thread ends when the last core is gone.

use crate::backup::Backups;
use crate::bounds::{BACKUP_READS_WAITING_MAX, ERRANDS_WAITING_MAX};
use crate::config::rewrite;
use crate::inbox::{Inbox, Mail};
use crate::tls::Certificates;
use crate::{secret, users};
use bytes::Bytes;
use ensue_node::{CertificateFiles, Errand, ErrandDone};
use ensue_types::SessionId;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

/// Something to be done, and for whom.
#[derive(Debug)]
struct Job {
    inbox: Arc<Inbox>,
    session: SessionId,
    number: u64,
    errand: Errand,
}

/// The way to the threads, of one core.
#[derive(Clone, Debug)]
pub(crate) struct Errands {
    jobs: SyncSender<Job>,
    /// Files are read by another thread, so that nobody waits for a password behind a disk.
    backups: SyncSender<Job>,
}

/// What errands of a node are about.
#[derive(Debug, Default)]
pub(crate) struct Subjects {
    pub(crate) users_file: Option<PathBuf>,
    /// The configuration file.
    pub(crate) configuration: Option<PathBuf>,
    pub(crate) certificates: Option<Certificates>,
    /// Gives memory that is free back to the machine, where the allocator can be told to.
    pub(crate) purge: Option<fn()>,
}

impl Errands {
    /// Starts the threads of a node.
    pub(crate) fn start(subjects: Subjects, backups: Backups) -> io::Result<Errands> {
        let (jobs, arriving) = sync_channel(ERRANDS_WAITING_MAX);
        let run = move || run(&arriving, &subjects);
        thread::Builder::new().name("ensue-errands".into()).spawn(run)?;
        let (reads, arriving) = sync_channel(BACKUP_READS_WAITING_MAX);
        thread::Builder::new().name("ensue-backup".into()).spawn(move || keep(&arriving, backups))?;
        Ok(Errands { jobs, backups: reads })
    }

    /// Has it done, unless too many wait; the answer comes to this inbox.
    pub(crate) fn submit(&self, inbox: &Arc<Inbox>, session: SessionId, number: u64, errand: Errand) {
        let job = Job { inbox: Arc::clone(inbox), session, number, errand };
        let threads = if matches!(job.errand, Errand::Backup(_)) { &self.backups } else { &self.jobs };
        match threads.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(Job { inbox, session, number, .. })) => {
                inbox.post(Mail::ErrandDone { session, number, done: ErrandDone::Busy });
            }
            Err(TrySendError::Disconnected(_)) => {
                unreachable!("the thread runs as long as somebody can ask it")
            }
        }
    }
}

fn run(jobs: &Receiver<Job>, subjects: &Subjects) {
    while let Ok(Job { inbox, session, number, errand }) = jobs.recv() {
        // Without chance there are no salts: the session answers that it took too long.
        if let Some(done) = carry_out(errand, subjects) {
            inbox.post(Mail::ErrandDone { session, number, done });
        }
    }
}

/// Ends when the last core is gone, and lets go what is kept.
fn keep(jobs: &Receiver<Job>, mut backups: Backups) {
    loop {
        match jobs.recv_timeout(BACKUP_LOOK) {
            Ok(Job { inbox, session, number, errand: Errand::Backup(errand) }) => {
                let done = ErrandDone::Backup(backups.carry_out(errand));
                inbox.post(Mail::ErrandDone { session, number, done });
            }
            Ok(_) => unreachable!("only these are sent here"),
            Err(RecvTimeoutError::Timeout) => backups.tend(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn carry_out(errand: Errand, subjects: &Subjects) -> Option<ErrandDone> {
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
        Err(Errand::SaveUsers(text)) => ErrandDone::Saved(saved(subjects.users_file.as_deref(), &text)),
        Err(Errand::LoadUsers { opens_channels }) => {
            ErrandDone::Loaded(loaded(subjects.users_file.as_deref(), opens_channels))
        }
        Err(Errand::Certificates(files)) => ErrandDone::Configured(certified(subjects, &files)),
        Err(Errand::Rewrite { settings, users }) => {
            let path = subjects.configuration.as_deref();
            let written = rewrite::rewrite(path, &settings, users.as_deref());
            ErrandDone::Configured(written.map_err(|error| error.to_string()))
        }
        Err(_) => {
            subjects.purge.iter().for_each(|purge| purge());
            ErrandDone::Purged
        }
    };
    has_chance.then_some(done)
}

fn certified(subjects: &Subjects, files: &CertificateFiles) -> Result<(), String> {
    let certificates = subjects.certificates.as_ref().ok_or(NO_TLS)?;
    certificates.replace(files).map_err(|error| error.to_string())
}

fn loaded(path: Option<&Path>, opens_channels: bool) -> Result<Bytes, String> {
    let path = path.ok_or(NO_FILE)?;
    users::load(path, opens_channels).map(|users| users.save().into()).map_err(|error| error.to_string())
}

fn saved(path: Option<&Path>, text: &[u8]) -> Result<(), String> {
    let path = path.ok_or(NO_FILE)?;
    users::save(path, text).map_err(|error| error.to_string())
}

/// How often somebody looks whether a backup is to be let go.
const BACKUP_LOOK: Duration = Duration::from_secs(10);
const NO_TLS: &str =
    "none of `tls-port`, `tls-cluster` and `metrics-tls` is configured, so there are no certificates";
const NO_FILE: &str = "there is no file of users";

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Poll, Token, Waker};

    #[test]
    fn what_is_too_much_comes_back_undone() {
        let poll = Poll::new().unwrap();
        let inbox = Arc::new(Inbox::new(Arc::new(Waker::new(poll.registry(), Token(0)).unwrap())));
        // Nobody does any.
        let (jobs, _arriving) = sync_channel(2);
        let (backups, _reads) = sync_channel(2);
        let errands = Errands { jobs, backups };
        for number in 0..4 {
            errands.submit(&inbox, SessionId(1), number, Errand::Draw(1));
        }
        let mut mail = Vec::new();
        inbox.take(&mut mail);
        let busy = |mail: &Mail| match mail {
            Mail::ErrandDone { number, done: ErrandDone::Busy, .. } => *number,
            other => panic!("{other:?}"),
        };
        assert_eq!(mail.iter().map(busy).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn errands_are_done_and_what_is_about_a_file_needs_one() {
        let done = |errand| carry_out(errand, &Subjects::default()).expect("there is chance");
        assert!(matches!(done(Errand::Draw(70)), ErrandDone::Drawn(bytes) if bytes.len() == 70));
        let load = Errand::LoadUsers { opens_channels: false };
        assert!(matches!(done(load), ErrandDone::Loaded(Err(_))));
        assert!(matches!(done(Errand::SaveUsers(Bytes::new())), ErrandDone::Saved(Err(_))));
        let rewrite = Errand::Rewrite { settings: Vec::new(), users: None };
        let ErrandDone::Configured(Err(why)) = done(rewrite) else { panic!("there is no file") };
        assert_eq!(why, "The server is running without a config file");
        let certificates = Errand::Certificates(CertificateFiles::default());
        assert!(matches!(done(certificates), ErrandDone::Configured(Err(_))));
        assert!(matches!(done(Errand::Purge), ErrandDone::Purged));
    }
}
