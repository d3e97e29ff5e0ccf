//! `ensue check --record`: stands between clients and servers, passes every byte on, and writes down what was said.
//!
//! Each connection has two threads, one a direction. Bytes are passed on as they came; a copy is read as commands or as
//! answers. What cannot be read is passed on all the same, and the history says that it is not known. A command is
//! noted before it leaves and an answer before it arrives, so a line never claims what had not happened.

use anyhow::{Context, bail};
use bytes::BytesMut;
use ensue_client::{RecordedConnection, Recorder};
use ensue_resp::parse::ParseLimits;
use ensue_resp::{Decoder, Parser};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Most connections at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 1_000;
const READ_BYTES: usize = 64 << 10;

/// What to record, and between whom.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordArgs {
    /// Record a new history into this file: pass on what clients say to servers until interrupted
    #[arg(long, value_name = "FILE", requires_all = ["listen", "server"])]
    pub(crate) record: Option<PathBuf>,
    /// Where clients of the recorder connect; may be given several times, each with a server
    #[arg(long, value_name = "ADDRESS", requires = "record")]
    listen: Vec<SocketAddr>,
    /// Where the server is to which the recorder passes on
    #[arg(long, value_name = "HOST:PORT", requires = "record")]
    server: Vec<String>,
    /// The name of that server's datacenter in the history
    #[arg(long, value_name = "NAME", requires = "record")]
    datacenter: Vec<String>,
}

/// Where connections come from and go to.
struct Route {
    listener: TcpListener,
    server: String,
    datacenter: Option<String>,
    recorder: Recorder,
    live: Live,
}

/// The connections that are passed on now.
#[derive(Clone, Default)]
struct Live(Arc<Mutex<Vec<Arc<Mutex<RecordedConnection>>>>>);

/// Records until SIGINT or SIGTERM.
pub(crate) fn run(args: &RecordArgs, file: &PathBuf) -> anyhow::Result<ExitCode> {
    if args.listen.len() != args.server.len() {
        bail!("each --listen needs one --server");
    }
    if !args.datacenter.is_empty() && args.datacenter.len() != args.listen.len() {
        bail!("--datacenter is given for each --listen, or not at all");
    }
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let listeners: Vec<TcpListener> = args
        .listen
        .iter()
        .map(|address| TcpListener::bind(address).with_context(|| format!("cannot listen on {address}")))
        .collect::<Result<_, _>>()?;
    let output = File::create_new(file)
        .with_context(|| format!("cannot create {}; a history is never continued", file.display()))?;
    let recorder = Recorder::new(Box::new(output))?;
    let live = Live::default();
    for (place, listener) in listeners.into_iter().enumerate() {
        let route = Route {
            server: args.server[place].clone(),
            datacenter: args.datacenter.get(place).cloned(),
            recorder: recorder.clone(),
            live: live.clone(),
            listener,
        };
        println!("recording {} to {}", args.listen[place], route.server);
        thread::spawn(move || route.accept());
    }
    let _ = signals.forever().next();
    live.finish(&recorder).with_context(|| format!("{} is not complete", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

impl Live {
    /// Nothing if there are too many.
    fn add(&self, connection: RecordedConnection) -> Option<Arc<Mutex<RecordedConnection>>> {
        let mut live = locked(&self.0);
        if live.len() >= CONNECTIONS_MAX {
            return None;
        }
        let record = Arc::new(Mutex::new(connection));
        live.push(Arc::clone(&record));
        Some(record)
    }

    fn remove(&self, record: &Arc<Mutex<RecordedConnection>>) {
        locked(&self.0).retain(|other| !Arc::ptr_eq(other, record));
    }

    /// Closes the history, with what is pending on any connection.
    fn finish(&self, recorder: &Recorder) -> io::Result<()> {
        let live = locked(&self.0);
        // While they are held nothing is passed on: what a connection sent after its end, another could see before its
        // own.
        let held = live.iter().map(|record| {
            let mut record = locked(record);
            record.on_end();
            record
        });
        let _held: Vec<MutexGuard<'_, RecordedConnection>> = held.collect();
        recorder.finish()
    }
}

impl Route {
    fn accept(self) {
        for client in self.listener.incoming().flatten() {
            let Some(record) = self.live.add(self.recorder.connection(self.datacenter.as_deref())) else {
                eprintln!("ensue: more than {CONNECTIONS_MAX} connections; one is closed");
                continue;
            };
            let (server, live) = (self.server.clone(), self.live.clone());
            thread::spawn(move || {
                if let Err(error) = serve(&client, &server, &record) {
                    eprintln!("ensue: a connection to {server}: {error}");
                }
                live.remove(&record);
            });
        }
    }
}

/// Passes everything on in both directions until one end closes.
fn serve(client: &TcpStream, server: &str, record: &Mutex<RecordedConnection>) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    thread::scope(|scope| {
        scope.spawn(|| pass(client, &server, Commands::new(record)));
        pass(&server, client, Answers::new(record));
    });
    locked(record).on_end();
    Ok(())
}

/// Passes on in one direction until its end, then closes both: half a connection is of no use to a client of Redis.
fn pass(mut from: &TcpStream, mut to: &TcpStream, mut reader: impl Listen) {
    let mut buffer = vec![0; READ_BYTES];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        reader.hear(&buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

trait Listen {
    fn hear(&mut self, bytes: &[u8]);
}

/// Reads what a client says.
struct Commands<'a> {
    record: &'a Mutex<RecordedConnection>,
    input: BytesMut,
    parser: Parser,
    is_lost: bool,
}

impl<'a> Commands<'a> {
    fn new(record: &'a Mutex<RecordedConnection>) -> Commands<'a> {
        Commands {
            record,
            input: BytesMut::new(),
            parser: Parser::new(ParseLimits::default()),
            is_lost: false,
        }
    }
}

impl Listen for Commands<'_> {
    fn hear(&mut self, bytes: &[u8]) {
        if self.is_lost {
            return;
        }
        self.input.extend_from_slice(bytes);
        loop {
            match self.parser.next(&mut self.input) {
                Ok(None) => return,
                Ok(Some(args)) => locked(self.record).on_command(&args),
                Err(_) => {
                    locked(self.record).on_unreadable_command();
                    self.is_lost = true;
                    self.input = BytesMut::new();
                    return;
                }
            }
        }
    }
}

/// Reads what a server answers.
struct Answers<'a> {
    record: &'a Mutex<RecordedConnection>,
    input: BytesMut,
    decoder: Decoder,
    /// What is arriving was begun by the server, and answers nothing.
    is_push: bool,
    is_lost: bool,
}

impl<'a> Answers<'a> {
    fn new(record: &'a Mutex<RecordedConnection>) -> Answers<'a> {
        let (input, decoder) = (BytesMut::new(), Decoder::new());
        Answers { record, input, decoder, is_push: false, is_lost: false }
    }
}

impl Listen for Answers<'_> {
    fn hear(&mut self, bytes: &[u8]) {
        if self.is_lost {
            return;
        }
        self.input.extend_from_slice(bytes);
        loop {
            self.is_push = self.input.first() == Some(&b'>');
            match self.decoder.next(&mut self.input) {
                Ok(None) => return,
                Ok(Some(_)) if self.is_push => {}
                Ok(Some(reply)) => locked(self.record).on_reply(&reply),
                Err(_) => {
                    locked(self.record).on_unreadable_reply();
                    self.is_lost = true;
                    self.input = BytesMut::new();
                    return;
                }
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
