//! What all sessions of a core share: the configuration, the protocols, the one queue of outputs, timers and counters.
//!
//! It promises that outputs leave in the order in which they were given. It knows no session's state.

use super::access::{Access, scripts};
use super::audited;
use super::channels::Channels;
use super::home_requests::HomeRequests;
use super::home_serving::HomeServing;
use super::known_scripts::KnownScripts;
use super::latency::Latency;
use super::links::Links;
use super::output::SessionOutput;
use super::parameters::{Parameters, Setting};
use super::pause::Pause;
use super::slow_log::SlowLog;
use super::timers::Timers;
use super::tracking::{Options, Push, Tracking};
use crate::command::events;
use crate::cpu::CpuReport;
use crate::homes::KnownHomes;
use crate::links::LinkReport;
use crate::memory::Memory;
use crate::observation::Observation;
use crate::placement::Placement;
use crate::replicas::ReplicaFigures;
use crate::scrub::ScrubReport;
use crate::statistics::{self, Rate, Statistics, error_word};
use crate::{NodeConfig, Trace};
use bytes::Bytes;
use ensue_acl::Refusal;
use ensue_protocol::Protocol;
use ensue_resp::{CommandSpec, ProtocolVersion};
use ensue_types::{
    Args, CoreId, DatacenterId, KeyspaceId, LogicalTime, Now, PartitionId, Reply, RequestId, SessionId,
};
use ensue_wire::{Address, ChannelKind, CoreName, Envelope, Interest, Message};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

/// The shared part of a core's sessions.
#[derive(Clone, Debug)]
pub(super) struct CoreState {
    pub(super) config: Arc<NodeConfig>,
    pub(super) protocols: Arc<Vec<Box<dyn Protocol>>>,
    pub(super) timers: Timers,
    pub(super) counters: Counters,
    outputs: VecDeque<SessionOutput>,
    /// Who waits for which dependency check.
    pub(super) checks: BTreeMap<u64, Waiter>,
    checks_made: u32,
    /// Who subscribes to what.
    pub(super) channels: Channels,
    /// Where the homes of keys are, as far as this core knows.
    pub(super) homes: KnownHomes,
    /// What other datacenters, homes of keys, were asked to execute.
    pub(super) home_requests: HomeRequests,
    /// What other datacenters have asked this one, a home of keys, to execute.
    pub(super) home_serving: HomeServing,
    /// What `CONFIG SET` changes.
    pub(super) parameters: Parameters,
    /// Partitions have to be told of them.
    parameters_changed: bool,
    /// Deadlines are not looked at by time, as tests ask for it.
    pub(super) expires_lazily: bool,
    /// The parameter by which commands are noted as slow, which every command looks at.
    slower_than_us: i64,
    /// Until when sessions begin nothing.
    pub(super) pause: Pause,
    /// Which clients cache what they have read.
    pub(super) tracking: Tracking,
    /// The partitions of the datacenter tell this core what is written.
    receives_changes: bool,
    /// Commands that took long.
    pub(super) slow_log: SlowLog,
    /// Who the users are, and who was refused.
    pub(super) access: Access,
    /// Records of operators' commands that could not be written, of this node if this is its first core.
    pub(super) audit_lost: u64,
    /// When commands took long.
    pub(super) latency: Latency,
    /// The parameter above which that is noted.
    latency_threshold_ms: i64,
    /// Scripts that every partition of the datacenter was told of.
    pub(super) scripts: KnownScripts,
    /// Sessions that `CLIENT KILL` can name.
    connected: BTreeSet<SessionId>,
    /// Sessions to close when the present turn is over.
    doomed: Vec<SessionId>,
    /// Sessions of which a message had to wait here for its past, and may do so still.
    pub(super) late_publishers: BTreeSet<SessionId>,
    /// Which cores of the datacenter can be asked.
    links: Links,
    /// Where the partitions of all datacenters live.
    pub(super) placement: Placement,
    /// What is known of this core's links.
    link_reports: BTreeMap<DatacenterId, LinkReport>,
    pub(super) memory: Memory,
    /// A partition of this core refuses what may make data grow.
    is_short_of_memory: bool,
    /// Every partition of the datacenter runs a script for long: what commands are refused with.
    busy: Option<&'static str>,
    pub(super) cpu: CpuReport,
    /// What was read of the disk in the background, if somebody does.
    pub(super) scrubbed: Option<ScrubReport>,
    /// Of a core of a datacenter whose partitions have replicas.
    pub(super) replicas: Option<ReplicaFigures>,
    /// The node is shutting down: no further command is begun.
    stopping: bool,
}

/// Who waits for the answer to a dependency check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waiter {
    Session(SessionId),
    /// The messages of a publisher elsewhere.
    Messages(Publisher),
}

impl From<SessionId> for Waiter {
    fn from(session: SessionId) -> Waiter {
        Waiter::Session(session)
    }
}

/// A session of another datacenter that publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Publisher {
    pub(super) core: CoreName,
    pub(super) session: SessionId,
}

/// What `INFO stats` counts for a core.
#[derive(Clone, Default)]
pub(super) struct Counters {
    pub(super) connections: u64,
    pub(super) commands: u64,
    rate: Rate,
    /// Answers that were errors, by their first words.
    errors: BTreeMap<String, u64>,
    /// Of commands that no partition counts.
    pub(super) statistics: Statistics,
    /// Partitions have to count from zero again, too.
    pub(super) reset: bool,
    pub(super) messages: Messages,
}

/// What became of messages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Messages {
    /// By clients of this core.
    pub(super) published: u64,
    /// From other cores.
    pub(super) received: u64,
    /// To clients of this core, each of them counted.
    pub(super) delivered: u64,
    /// They had waited as long as they may for what their publishers had seen.
    pub(super) dropped_late: u64,
    /// Too many bytes waited for that.
    pub(super) dropped_full: u64,
    /// What their publishers had seen was lost with a dead datacenter, or is nothing that there is.
    pub(super) dropped_lost: u64,
    /// The link to another core had too many bytes to send.
    pub(super) dropped_link: u64,
    /// Clients that were disconnected because they did not read what they subscribe to.
    pub(super) slow_subscribers: u64,
}

impl Messages {
    /// Those that are not zero.
    fn metrics(self) -> impl Iterator<Item = (String, i64)> {
        let Messages { published, received, delivered, .. } = self;
        let Messages { dropped_late, dropped_full, dropped_lost, dropped_link, slow_subscribers, .. } = self;
        let metrics = [
            ("pubsub_published", published),
            ("pubsub_received", received),
            ("pubsub_delivered", delivered),
            ("pubsub_dropped_late", dropped_late),
            ("pubsub_dropped_full", dropped_full),
            ("pubsub_dropped_lost", dropped_lost),
            ("pubsub_dropped_link", dropped_link),
            ("client_output_buffer_limit_disconnections", slow_subscribers),
        ];
        let counted = metrics.into_iter().filter(|(_, value)| *value > 0);
        counted.map(|(name, value)| (name.to_owned(), value as i64))
    }
}

const EVENTS: &str = "notify-keyspace-events";

/// What the channels of keyspace events begin with.
const EVENT_CHANNELS: &[u8] = b"__key";
/// The parameter that says whether new users may use all channels.
const CHANNELS: &str = "acl-pubsub-default";
const SLOWER_THAN: &str = "slowlog-log-slower-than";
const LATENCY_THRESHOLD: &str = "latency-monitor-threshold";

/// Names that a core is told in one message when it knows none.
const INTERESTS_TOLD_AT_ONCE: usize = 4_096;

/// First words of errors that are counted each by itself; there are fewer.
const ERRORS_MAX: usize = 128;

/// Nothing that happens later depends on the others, so two nodes that differ in them alone are in the same state.
impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counters { connections, commands, .. } = self;
        f.debug_struct("Counters").field("connections", connections).field("commands", commands).finish()
    }
}

impl Counters {
    /// A turn begins.
    pub(super) fn on_turn(&mut self, now: Now) {
        self.rate.observe(now.monotonic_us, self.commands);
    }

    /// A command is not executed.
    pub(super) fn on_rejected(&mut self, spec: Option<&'static CommandSpec>) {
        if let Some(spec) = spec {
            self.statistics.count_rejected(spec, None);
        }
    }

    /// An answer leaves.
    pub(super) fn on_reply(&mut self, reply: &Reply) {
        let Reply::Error(words) = reply else { return };
        let first = error_word(words);
        if let Some(count) = self.errors.get_mut(first) {
            *count += 1;
        } else if self.errors.len() < ERRORS_MAX {
            self.errors.insert(first.to_owned(), 1);
        }
    }

    /// The metrics, by name; all can be added up over cores.
    pub(super) fn metrics(&mut self, now: Now) -> Vec<(String, i64)> {
        let mut metrics = self.statistics.metrics();
        let mut add = |name: String, value: u64| metrics.push((name, value as i64));
        add("total_connections_received".to_owned(), self.connections);
        add("total_commands_processed".to_owned(), self.commands);
        let rate = self.rate.observe(now.monotonic_us, self.commands);
        add("instantaneous_ops_per_sec".to_owned(), rate);
        add("total_error_replies".to_owned(), self.errors.values().sum());
        for (word, count) in &self.errors {
            add(format!("{}{word}", statistics::ERROR), *count);
        }
        metrics.extend(self.messages.metrics());
        metrics
    }
}

impl CoreState {
    /// Panics if what sessions share contradicts itself.
    pub(super) fn check_invariants(&self) {
        self.channels.check_invariants();
        self.home_requests.check_invariants();
        self.home_serving.check_invariants();
    }

    pub(super) fn new(config: Arc<NodeConfig>, protocols: Arc<Vec<Box<dyn Protocol>>>) -> CoreState {
        assert!(!protocols.is_empty(), "there is at least keyspace 0");
        let mut parameters = Parameters::of_directives(&config.directives);
        if parameters.number("maxmemory") == 0 {
            let all = config.maxmemory.saturating_mul(u64::from(config.node_cores));
            parameters.begin_with("maxmemory", all.to_string());
        }
        parameters.begin_with("maxmemory-policy", config.maxmemory_policy.clone());
        CoreState {
            parameters_changed: false,
            expires_lazily: false,
            tracking: Tracking::default(),
            receives_changes: false,
            slow_log: SlowLog::default(),
            access: {
                let mut access = Access::new(config.users.clone(), config.identity_seed, config.core.0);
                access.open_channels(parameters.value(CHANNELS) == "allchannels");
                access
            },
            audit_lost: 0,
            latency: Latency::default(),
            latency_threshold_ms: parameters.number(LATENCY_THRESHOLD),
            slower_than_us: parameters.number(SLOWER_THAN),
            parameters,
            pause: Pause::default(),
            homes: KnownHomes::new(&config.homes),
            config,
            protocols,
            timers: Timers::default(),
            counters: Counters::default(),
            outputs: VecDeque::new(),
            checks: BTreeMap::new(),
            checks_made: 0,
            channels: Channels::default(),
            home_requests: HomeRequests::default(),
            home_serving: HomeServing::default(),
            scripts: KnownScripts::default(),
            connected: BTreeSet::new(),
            doomed: Vec::new(),
            late_publishers: BTreeSet::new(),
            links: Links::default(),
            placement: Placement::default(),
            link_reports: BTreeMap::new(),
            memory: Memory::default(),
            is_short_of_memory: false,
            busy: None,
            cpu: CpuReport::default(),
            scrubbed: None,
            replicas: None,
            stopping: false,
        }
    }

    pub(super) fn on_connected(&mut self, session: SessionId) {
        self.counters.connections += 1;
        self.connected.insert(session);
    }

    pub(super) fn on_gone(&mut self, session: SessionId) {
        self.connected.remove(&session);
        self.late_publishers.remove(&session);
        self.unsubscribe(session);
        let pushes = self.tracking.on_gone(session);
        self.push_changes(pushes);
        self.want_changes();
    }

    /// A session wants no message any more.
    pub(super) fn unsubscribe(&mut self, session: SessionId) {
        self.channels.forget(session);
        self.report_interest();
    }

    /// Tells the other cores what has changed of what the clients of this one subscribe to.
    pub(super) fn report_interest(&mut self) {
        for (core, changes) in self.channels.take_changes(self.config.topology.datacenter) {
            self.send_interest(core, false, changes);
        }
    }

    /// A core of any datacenter can be told, and knows nothing.
    pub(super) fn on_peer_up(&mut self, core: CoreName) {
        let table = self.channels.on_link_up(core);
        for (index, changes) in table.chunks(INTERESTS_TOLD_AT_ONCE).enumerate() {
            self.send_interest(core, index == 0, changes.to_vec());
        }
    }

    /// Another datacenter is not told who wants to see the commands of this one.
    fn send_interest(&mut self, core: CoreName, all: bool, mut changes: Vec<Interest>) {
        if core.datacenter != self.config.topology.datacenter {
            changes.retain(|interest| interest.kind != ChannelKind::Monitor);
        }
        if changes.is_empty() && !all {
            return;
        }
        let to = Address::Core { datacenter: core.datacenter, core: core.core };
        self.send(to, LogicalTime::ZERO, Message::Interest { all, changes });
    }

    /// A client is told from now on of the commands of all clients of this datacenter.
    pub(super) fn monitor(&mut self, session: SessionId, version: ProtocolVersion) {
        self.channels.subscribe(session, version, ChannelKind::Monitor, &Bytes::new());
        self.report_interest();
    }

    /// Whether somebody wants to see every command.
    pub(super) fn is_monitored(&self) -> bool {
        self.channels.is_monitored()
    }

    /// Shows a command of a session to whoever wants to see all of them.
    pub(super) fn show_command(&mut self, session: SessionId, line: String) {
        let (name, line) = (Bytes::new(), Bytes::from(line));
        for (core, _) in self.channels.targets(ChannelKind::Monitor, &name) {
            let to = Address::Core { datacenter: core.datacenter, core: core.core };
            let (kind, channel, payload) = (ChannelKind::Monitor, name.clone(), line.clone());
            let publish = Message::Publish { publisher: session, kind, channel, payload, past: Vec::new() };
            self.send(to, LogicalTime::ZERO, publish);
        }
        let frames = self.channels.frames(ChannelKind::Monitor, &name, &line);
        self.push_all(frames);
    }

    /// Hands frames to subscribers; those of one session are given back.
    pub(super) fn push_frames(
        &mut self,
        frames: Vec<(SessionId, Bytes)>,
        but_for: Option<SessionId>,
    ) -> Vec<Bytes> {
        let mut kept = Vec::new();
        for (session, bytes) in frames {
            match but_for == Some(session) {
                true => kept.push(bytes),
                false => self.output(SessionOutput::Push { session, bytes }),
            }
        }
        kept
    }

    pub(super) fn on_link_up(&mut self, core: CoreId) {
        // It may have been started anew, and know no script.
        self.scripts.forget();
        self.links.on_up(core);
        let moves = self.homes.moves();
        if !moves.is_empty() {
            let to = Address::Core { datacenter: self.config.topology.datacenter, core };
            self.send(to, LogicalTime::ZERO, Message::HomeMoves { asks: false, moves });
        }
        if self.receives_changes {
            self.report_changes(true, Some(core));
        }
    }

    pub(super) fn on_link_down(&mut self, core: CoreId) {
        self.links.on_down(core);
        // What its partitions had to tell may be lost.
        let pushes = self.tracking.on_everything();
        self.push_changes(pushes);
    }

    /// A partition has another owner, or none: what the one before had to tell may be lost.
    pub(super) fn on_partition_moved(&mut self, partition: PartitionId) {
        // The new one may know no script.
        self.scripts.forget();
        let pushes = self.tracking.on_everything();
        self.push_changes(pushes);
        if self.receives_changes && self.reaches(partition) {
            let to = self.partition_address(partition);
            self.send(to, LogicalTime::ZERO, Message::ReportChanges { wanted: true });
        }
    }

    pub(super) fn on_link_report(&mut self, report: LinkReport) {
        self.link_reports.insert(report.datacenter, report);
    }

    pub(super) fn expire_actively(&mut self, is_active: bool) {
        self.expires_lazily = !is_active;
        self.parameters_changed = true;
    }

    pub(super) fn set_parameters(&mut self, settings: &[Setting]) {
        self.parameters.set(settings);
        self.slower_than_us = self.parameters.number(SLOWER_THAN);
        self.latency_threshold_ms = self.parameters.number(LATENCY_THRESHOLD);
        self.access.open_channels(self.parameters.value(CHANNELS) == "allchannels");
        self.parameters_changed = true;
        if let Some(parameters) = self.parameters.of_host(settings) {
            self.output(SessionOutput::Configure(Box::new(parameters)));
        }
        let pushes = self.tracking.limit(self.tracked_keys_max());
        self.push_changes(pushes);
        self.want_changes();
    }

    /// A command begins that may turn out to be slow.
    pub(super) fn note_slow(
        &mut self,
        session: SessionId,
        (spec, args): (&CommandSpec, &Args),
        client: (&str, &Bytes),
    ) {
        if self.slow_log.wants(spec, self.slower_than_us) {
            let args = audited::without_secrets(spec, scripts::shown(args));
            self.slow_log.note(session, &args, client);
        }
    }

    /// Changes users, and tells whoever owns the sockets if that opens or closes the door.
    pub(super) fn change_users(&mut self, change: impl FnOnce(&mut Access)) {
        let was_open = self.access.newcomer().is_some();
        change(&mut self.access);
        let is_open = self.access.newcomer().is_some();
        if is_open != was_open {
            self.output(SessionOutput::Openness { is_open });
        }
    }

    /// Notes who was refused what, for `ACL LOG`.
    pub(super) fn note_refusal(&mut self, now: Now, refusal: Refusal) {
        let entries_max = usize::try_from(self.parameters.number("acllog-max-len")).unwrap_or(0);
        self.access.note(now, refusal, entries_max);
    }

    /// Whether something is to be noted of every command.
    pub(super) fn notes_all(&self) -> bool {
        !self.tracking.is_empty() || SlowLog::wants_all(self.slower_than_us) || self.is_monitored()
    }

    /// The commands of a turn took so long each.
    pub(super) fn on_turn_end(&mut self, now: Now, took_us: u64) {
        self.latency.on_command(now, took_us, self.latency_threshold_ms);
        let entries_max = self.slow_entries_max();
        self.slow_log.on_turn_end(now, took_us, self.slower_than_us, entries_max);
    }

    /// The present command makes all wait for so long.
    pub(super) fn on_slept(&mut self, now: Now, ms: u64) {
        self.latency.on_command(now, ms.saturating_mul(1_000), self.latency_threshold_ms);
        let entries_max = self.slow_entries_max();
        self.slow_log.on_slept(now, ms.saturating_mul(1_000), self.slower_than_us, entries_max);
    }

    fn slow_entries_max(&self) -> usize {
        usize::try_from(self.parameters.number("slowlog-max-len")).unwrap_or(0)
    }

    /// The present input has done all that it does: clients are told together of what they are to be told together.
    pub(super) fn on_quiet(&mut self) {
        // Other cores say who monitors there.
        self.want_changes();
        let pushes = self.tracking.take_broadcasts();
        self.push_changes(pushes);
    }

    /// A client is told from now on when what it reads changes.
    pub(super) fn start_tracking(&mut self, client: SessionId, version: ProtocolVersion, options: Options) {
        self.tracking.start(client, version, options);
        self.want_changes();
    }

    pub(super) fn stop_tracking(&mut self, client: SessionId) {
        self.tracking.stop(client);
        self.want_changes();
    }

    /// A client that is told of changes reads these keys.
    pub(super) fn note_reads<'k>(&mut self, client: SessionId, keys: impl Iterator<Item = &'k Bytes>) {
        let pushes = self.tracking.note(client, keys, self.tracked_keys_max());
        self.push_changes(pushes);
    }

    fn tracked_keys_max(&self) -> usize {
        usize::try_from(self.parameters.number("tracking-table-max-keys")).unwrap_or(0)
    }

    /// Something was written: clients that cache it are told, and those that subscribe to keyspace events.
    pub(super) fn on_changed(
        &mut self,
        keyspace: KeyspaceId,
        change: (Option<Bytes>, Bytes, Option<SessionId>),
    ) {
        let (key, event, writer) = change;
        let pushes = self.tracking.on_change(key.as_ref(), writer);
        self.push_changes(pushes);
        let flags = self.parameters.value(EVENTS);
        let Some(key) = key.filter(|_| !flags.is_empty() && !event.is_empty()) else { return };
        let class = events::class_of(std::str::from_utf8(&event).unwrap_or_default());
        if !flags.contains(class) && (class == 'n' || !flags.contains('A')) {
            return;
        }
        let (of_keys, of_events) = (flags.contains('K'), flags.contains('E'));
        let channel = |of: &str, name: &Bytes| {
            let mut channel = format!("__{of}@{}__:", keyspace.0).into_bytes();
            channel.extend_from_slice(name);
            Bytes::from(channel)
        };
        let mut frames = Vec::new();
        if of_keys {
            frames = self.channels.frames(ChannelKind::Channel, &channel("keyspace", &key), &event);
        }
        if of_events {
            frames.extend(self.channels.frames(ChannelKind::Channel, &channel("keyevent", &event), &key));
        }
        self.push_all(frames);
    }

    pub(super) fn push_all(&mut self, pushes: Vec<Push>) {
        for (session, bytes) in pushes {
            self.output(SessionOutput::Push { session, bytes });
        }
    }

    /// Tells clients of changes. A client of RESP2 that has subscribed to nothing would take it for an answer.
    pub(super) fn push_changes(&mut self, mut pushes: Vec<Push>) {
        let is_told = |session| {
            let kinds = [ChannelKind::Channel, ChannelKind::Pattern, ChannelKind::Shard];
            kinds.iter().any(|kind| self.channels.count(session, *kind) > 0)
        };
        pushes.retain(|(session, bytes)| !bytes.starts_with(b"*") || is_told(*session));
        self.push_all(pushes);
    }

    /// Whether somebody here may hear of keyspace events.
    fn tells_events(&self) -> bool {
        !self.parameters.value(EVENTS).is_empty() && self.channels.may_hear(EVENT_CHANNELS)
    }

    /// Has the partitions tell this core what is written, if anybody here wants to know.
    fn want_changes(&mut self) {
        let wanted = !self.tracking.is_empty() || self.tells_events() || self.is_monitored();
        if wanted != self.receives_changes {
            self.receives_changes = wanted;
            self.report_changes(wanted, None);
        }
    }

    /// The same of the partitions of one core, or of all that can be asked.
    fn report_changes(&mut self, wanted: bool, of: Option<CoreId>) {
        for partition in (0..self.partitions()).map(PartitionId) {
            if of.is_none_or(|core| self.owner(partition) == core) && self.reaches(partition) {
                let to = self.partition_address(partition);
                self.send(to, LogicalTime::ZERO, Message::ReportChanges { wanted });
            }
        }
    }

    /// Whether there is a client of this name.
    pub(super) fn is_connected(&self, session: SessionId) -> bool {
        self.connected.contains(&session)
    }

    /// Whether parameters were set since the last call.
    pub(super) fn take_parameters_changed(&mut self) -> bool {
        std::mem::take(&mut self.parameters_changed)
    }

    pub(super) fn on_shutdown(&mut self) {
        self.stopping = true;
    }

    pub(super) fn is_short_of_memory(&self) -> bool {
        self.is_short_of_memory
    }

    pub(super) fn set_short_of_memory(&mut self, is_short: bool) {
        self.is_short_of_memory = is_short;
    }

    pub(super) fn busy(&self) -> Option<&'static str> {
        self.busy
    }

    pub(super) fn set_busy(&mut self, words: Option<&'static str>) {
        self.busy = words;
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping
    }

    pub(super) fn next_output(&mut self) -> Option<SessionOutput> {
        self.outputs.pop_front()
    }

    /// How many clients are connected.
    pub(super) fn clients(&self) -> usize {
        self.connected.len()
    }

    pub(super) fn link_reports(&self) -> impl Iterator<Item = &LinkReport> {
        self.link_reports.values()
    }

    /// Closes a connection when the present turn is over; false if there is none of this name.
    pub(super) fn close_later(&mut self, session: SessionId) -> bool {
        let connected = self.connected.contains(&session);
        if connected {
            self.doomed.push(session);
        }
        connected
    }

    pub(super) fn next_doomed(&mut self) -> Option<SessionId> {
        self.doomed.pop()
    }

    /// Whether a core of the datacenter can be asked.
    pub(super) fn reaches_core(&self, core: CoreId) -> bool {
        self.links.reaches(self.config.core, core)
    }

    /// Whether a partition of the datacenter can be asked.
    pub(super) fn reaches(&self, partition: PartitionId) -> bool {
        let topology = &self.config.topology;
        self.placement.is_owned(topology, topology.datacenter, partition)
            && self.reaches_core(self.owner(partition))
    }

    /// The core that owns a partition of the datacenter.
    pub(super) fn owner(&self, partition: PartitionId) -> CoreId {
        let topology = &self.config.topology;
        self.placement.owner(topology, topology.datacenter, partition)
    }

    /// Where answers to this core's sessions go.
    pub(super) fn address(&self) -> Address {
        Address::Core { datacenter: self.config.topology.datacenter, core: self.config.core }
    }

    pub(super) fn partition_address(&self, partition: PartitionId) -> Address {
        Address::Partition { datacenter: self.config.topology.datacenter, partition }
    }

    pub(super) fn protocol(&self, keyspace: KeyspaceId) -> &dyn Protocol {
        self.protocols[usize::from(keyspace.0)].as_ref()
    }

    pub(super) fn partitions(&self) -> u16 {
        self.config.topology.partitions
    }

    /// Over how many partitions, from the first on, the keys of a keyspace are spread.
    pub(super) fn spread(&self, keyspace: KeyspaceId) -> u16 {
        if self.protocol(keyspace).needs().one_stream { 1 } else { self.partitions() }
    }

    pub(super) fn request(&self, session: SessionId, sequence: u64) -> RequestId {
        RequestId { core: self.config.core, boot: self.config.boot, session, sequence }
    }

    pub(super) fn send(&mut self, to: Address, time: LogicalTime, message: Message) {
        let envelope = Envelope { from: self.address(), to, time, message };
        self.outputs.push_back(SessionOutput::Send(envelope));
    }

    /// What somebody wanted to see, who is no client.
    pub(super) fn show(&mut self, session: SessionId, observation: Box<Observation>) {
        self.output(SessionOutput::Observed { session, observation });
    }

    pub(super) fn output(&mut self, output: SessionOutput) {
        self.outputs.push_back(output);
    }

    pub(super) fn trace(&mut self, trace: Trace) {
        self.outputs.push_back(SessionOutput::Trace(trace));
    }

    /// Numbers for `count` dependency checks, consecutive, never used before in this or an earlier run.
    pub(super) fn begin_checks(&mut self, waiter: Waiter, count: u32) -> u64 {
        // Four billion checks ago the first ones were answered, or given up.
        let begin = if self.checks_made.checked_add(count).is_some() { self.checks_made } else { 0 };
        self.checks_made = begin + count;
        let first = u64::from(self.config.boot) << 32 | u64::from(begin);
        for check in first..first + u64::from(count) {
            self.checks.insert(check, waiter);
        }
        first
    }

    /// Who waits for a dependency check.
    pub(super) fn waits_for_check(&self, check: u64) -> Option<Waiter> {
        self.checks.get(&check).copied()
    }

    pub(super) fn end_checks(&mut self, first: u64, count: usize) {
        for check in first..first + count as u64 {
            self.checks.remove(&check);
        }
    }
}
