//! Clients that subscribe, one in some datacenters, and what they do when they hear of something.
//!
//! A message names the operation that published it. Who hears it opens a new connection in its datacenter, which has no
//! past of its own, and reads what the publisher had last written or read. The history says that this reader has the
//! publisher's past: so the oracle judges that a message is handed out only when what its publisher had seen is
//! visible.

use super::client::Purpose;
use super::command::{Command, Expect};
use super::mix::Draft;
use super::{Workload, next_answer};
use crate::oracle::history::{History, Location, OperationIndex, Outcome, Seen, Written};
use crate::oracle::{Violation, property};
use crate::random::Random;
use crate::resp::{self, Answer, Answers};
use crate::world::World;
use crate::world::event::{Alarm, ConnectionId};
use crate::world::marks::{Mark, Marks};
use crate::world::shape::Site;
use ensue_protocol::Recency;
use ensue_types::{CoreId, DatacenterId};

/// The channel of all worlds.
const CHANNEL: &str = "news";
/// How long a listener waits before it connects again.
const AGAIN_US: u64 = 20_000;

/// A subscribed connection; the client that reads what it hears of has a place of its own among the clients.
#[derive(Debug)]
pub(super) struct Listener {
    site: Site,
    connection: Option<ConnectionId>,
    incoming: Answers,
    /// The client that reads.
    reader: usize,
}

/// Every datacenter has a listener, in worlds in which somebody publishes.
pub(super) fn listeners(world: &World, clients: usize) -> Vec<Listener> {
    let options = &world.options;
    if options.workload.publish_rate == 0 {
        return Vec::new();
    }
    let random = &mut Random::stream(options.seed, "listeners");
    let shape = options.shape;
    let mut core = || CoreId(random.below(u64::from(shape.cores)) as u16);
    let sites = (0..shape.datacenters).map(|place| shape.site(DatacenterId(place), core()));
    let listener = |(place, site)| Listener {
        site,
        connection: None,
        incoming: Answers::default(),
        reader: clients + place,
    };
    sites.enumerate().map(listener).collect()
}

/// What `PUBLISH` sends as the operation that comes next.
pub(super) fn publication(history: &History) -> Draft {
    let text = format!("PUBLISH {CHANNEL} {}", history.next());
    Draft { commands: vec![Command::new(&text, Expect::Integer)], ..Draft::default() }
}

impl Workload {
    /// The listener whose reader this is.
    pub(super) fn listener_of(&self, reader: usize) -> Option<usize> {
        self.listeners.iter().position(|listener| listener.reader == reader)
    }

    /// A listener connects, if it is not connected.
    pub(super) fn listen(&mut self, world: &mut World, index: usize) {
        let listener = &mut self.listeners[index];
        if listener.connection.is_some() || self.stopping {
            return;
        }
        let connection = world.connect(listener.site);
        listener.connection = Some(connection);
        listener.incoming = Answers::default();
        world.send(connection, vec![resp::args(&format!("SUBSCRIBE {CHANNEL}"))]);
    }

    /// Whether a lost connection was that of a listener, who then connects again.
    pub(super) fn stops_listening(&mut self, world: &mut World, connection: ConnectionId) -> bool {
        let is_its = |listener: &&mut Listener| listener.connection == Some(connection);
        let Some(listener) = self.listeners.iter_mut().find(is_its) else { return false };
        listener.connection = None;
        let reader = listener.reader;
        world.alarm(world.now() + AGAIN_US, Alarm::Client(reader));
        true
    }

    /// Whether bytes are for a listener.
    pub(super) fn hears(
        &mut self,
        world: &mut World,
        marks: &mut Marks,
        connection: ConnectionId,
        bytes: &[u8],
    ) -> Result<bool, Violation> {
        let is_its = |listener: &Listener| listener.connection == Some(connection);
        let Some(index) = self.listeners.iter().position(is_its) else { return Ok(false) };
        self.listeners[index].incoming.extend(bytes);
        loop {
            let Some(answer) = next_answer(&mut self.listeners[index].incoming)? else { return Ok(true) };
            let wrong = || Violation::new(property::PROTOCOL, format!("a subscriber was told {answer}"));
            match &answer {
                // The node is about to stop, or the partitions do not serve.
                Answer::Error(_) => {
                    world.close(connection);
                    self.stops_listening(world, connection);
                    return Ok(true);
                }
                Answer::Array(items) if items.len() == 3 => match items[0].text() {
                    Some("subscribe") => {}
                    Some("message") => {
                        let published = items[2].text().and_then(|text| text.parse().ok());
                        let published = published.filter(|index| *index < self.history.next());
                        self.read_after(world, marks, index, published.ok_or_else(wrong)?);
                    }
                    _ => return Err(wrong()),
                },
                _ => return Err(wrong()),
            }
        }
    }

    /// A new session reads what the publisher had last seen; one at a time, so some messages are passed over.
    fn read_after(&mut self, world: &mut World, marks: &mut Marks, index: usize, published: OperationIndex) {
        marks.add(Mark::MessageHeard);
        let Listener { site, reader, .. } = self.listeners[index];
        // Where a new session shows nothing but its own past, it need not show what the publisher had seen.
        let promises = self.history.promises;
        let is_judged = promises.causality && promises.recency != Recency::OwnPast && !self.stopping;
        if !is_judged || !self.clients[reader].waiting.is_empty() {
            return;
        }
        let Some(location) = last_seen(&self.history, published) else { return };
        if let Some(connection) = self.clients[reader].connection.take() {
            world.close(connection);
            self.connections.remove(&connection);
        }
        let session = self.history.session();
        let client = &mut self.clients[reader];
        client.session = session;
        client.site = site;
        client.incoming = Answers::default();
        let connection = world.connect(site);
        client.connection = Some(connection);
        self.connections.insert(connection, reader);
        let text = format!("GET {}", self.history.name(location));
        let draft =
            Draft { commands: vec![Command::new(&text, Expect::Value(location))], ..Draft::default() };
        let commands = self.enqueue(world, reader, draft, Purpose::Work);
        if let Some(request) = self.clients[reader].waiting.back() {
            self.history.operations[request.operation].merges = Some(published);
        }
        self.send(world, reader, commands);
    }
}

/// The register that the session of an operation had last written or read, before it.
fn last_seen(history: &History, operation: OperationIndex) -> Option<Location> {
    let session = history.operations[operation].session;
    let before = history.sessions[session].iter().rev().skip_while(|&&index| index >= operation);
    let done = before.filter(|&&index| history.operations[index].outcome == Outcome::Done);
    done.into_iter().find_map(|&index| {
        let operation = &history.operations[index];
        let written = operation.writes.iter().filter(|(_, written)| *written == Written::Value);
        let read = operation.reads.iter().filter(|(_, seen)| matches!(seen, Seen::Value(_)));
        let places = written.map(|(location, _)| *location).chain(read.map(|(location, _)| *location));
        places.into_iter().find(|location| is_register(history.name(*location)))
    })
}

/// Whether a key holds one value that `GET` tells.
fn is_register(name: &str) -> bool {
    name.strip_prefix(['r', 'd']).is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}
