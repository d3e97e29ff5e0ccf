//! Asks servers for `INFO`, each in a thread of its own, so that one that is silent delays nobody.

use ensue_client::{ClientError, Connection, Options, Reply};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// A server that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) name: String,
    pub(super) host: String,
    pub(super) port: u16,
}

/// What a server answered, or why it did not.
#[derive(Debug)]
pub(super) struct Answer {
    /// Which of the targets.
    pub(super) target: usize,
    pub(super) at: Instant,
    pub(super) info: Result<String, String>,
}

const PAUSE: Duration = Duration::from_secs(1);
/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(8);
/// Answers that wait to be shown; whoever has more waits with them.
const ANSWERS_WAITING_MAX: usize = 256;

/// Begins to ask all of them. The threads end when nobody receives any more.
pub(super) fn start(targets: Vec<Target>, login: &Options) -> io::Result<Receiver<Answer>> {
    let (answers, arriving) = sync_channel(ANSWERS_WAITING_MAX);
    for (number, target) in targets.into_iter().enumerate() {
        let options =
            Options { host: target.host, port: target.port, answer_timeout: PATIENCE, ..login.clone() };
        let answers = answers.clone();
        thread::Builder::new()
            .name("ensue-top".into())
            .spawn(move || ask_again_and_again(number, &options, &answers))?;
    }
    Ok(arriving)
}

fn ask_again_and_again(target: usize, options: &Options, answers: &SyncSender<Answer>) {
    let mut connection = None;
    loop {
        let asked_at = Instant::now();
        let info = ask(&mut connection, options).map_err(|error| {
            // A connection that failed once is opened again.
            connection = None;
            error.to_string()
        });
        if answers.send(Answer { target, at: Instant::now(), info }).is_err() {
            return;
        }
        thread::sleep(PAUSE.saturating_sub(asked_at.elapsed()));
    }
}

fn ask(connection: &mut Option<Connection>, options: &Options) -> Result<String, ClientError> {
    let opened = match connection.take() {
        Some(opened) => opened,
        None => Connection::open(options)?,
    };
    match connection.insert(opened).call(&[b"INFO", b"everything"])? {
        Reply::Bulk(text) | Reply::Verbatim(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
        Reply::Error(words) => Err(ClientError::Refused(words.into_owned())),
        other => Err(ClientError::Refused(format!("no INFO, but {other:?}"))),
    }
}
