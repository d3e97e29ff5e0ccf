//! The metrics port: what a node shows of itself to monitoring systems and load balancers, over HTTP.
//!
//! - On `GET /metrics`: the figures of this node, as OpenMetrics or as the older text.
//! - On `GET /healthz`: that the process lives. No core is asked.
//! - On `GET /readyz`: what `ensue_ready` in `INFO` says, and to who may see the figures why not.
//! - On `GET /`: a page for people (`assets`), which draws what `GET /v1/state` says (`state`).
//! - On `GET /v1/keys` and `GET /v1/conflicts`: what the page shows of the data (`browse`).
//! - On `GET /v1/bdbs…`: what clients that fail over by themselves ask (`availability`).
//!
//! A thread of its own accepts connections, and each has a thread as long as it lasts: there are few, each has a bound
//! in bytes and in time, and one request, over TLS where it is wanted (`wire`). Whoever is slow or sends nonsense harms
//! only itself. Cores are asked through an inbox, as other threads ask them: for figures no more often than `watch`
//! lets, and for what a user may see as sessions ask (`access`).

mod access;
mod assets;
mod availability;
mod browse;
mod buckets;
mod commands;
mod families;
mod http;
mod page;
mod state;
mod watch;
mod wire;

use crate::bounds::{
    ACCEPT_PAUSE_US, METRICS_CONNECTIONS_MAX, METRICS_DRAIN_MS, METRICS_HEAD_BYTES_MAX,
    METRICS_LOCAL_CONNECTIONS, METRICS_TRANSFER_MS, OBSERVATION_WAIT_MS,
};
use crate::clock::{Clock, wall_ms};
use crate::config::{Cluster, Config};
use crate::inbox::Inbox;
use crate::listener::is_loopback;
use crate::log;
use crate::tls::Certificates;
use access::{Asked, Hosts, Visits};
use availability::Database;
use ensue_node::Scope;
use http::{Refusal, Request};
use page::Title;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use watch::Watch;
use wire::Wire;

pub(crate) use watch::Question;

/// Who watches a node, and what is shown.
#[derive(Debug)]
struct Site {
    title: Title,
    database: Database,
    watch: Watch,
    visits: Visits,
    hosts: Hosts,
    /// If connections use TLS.
    certificates: Option<Certificates>,
    /// When the port began.
    began: Instant,
    /// Everybody may see the figures.
    open: bool,
    /// The node lets no client in any more.
    draining: AtomicBool,
    /// Nobody is accepted any more.
    stopping: AtomicBool,
    connections: AtomicUsize,
}

impl Site {
    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

/// The metrics port of a node, served until this is dropped.
#[derive(Debug)]
pub(crate) struct MetricsPort {
    site: Arc<Site>,
    address: SocketAddr,
}

/// The socket, if the configuration wants one.
pub(crate) fn listen(config: &Config) -> Result<Option<TcpListener>, (SocketAddr, io::Error)> {
    if config.metrics_port == 0 {
        return Ok(None);
    }
    let address = SocketAddr::new(config.metrics_bind, config.metrics_port);
    if !is_loopback(address.ip()) {
        if config.metrics_unauthenticated {
            log::warning(format_args!("whoever reaches {address} can read the metrics of this node"));
        } else if !config.metrics_tls {
            log::warning(format_args!(
                "`metrics-bind {}` without `metrics-tls yes`: passwords are sent there in the clear",
                config.metrics_bind
            ));
        }
    }
    TcpListener::bind(address).map(Some).map_err(|error| (address, error))
}

impl MetricsPort {
    /// Serves on this socket, and asks the node's first core.
    pub(crate) fn start(
        socket: TcpListener,
        config: &Config,
        cluster: &Cluster,
        clock: Clock,
        (inbox, certificates): (Arc<Inbox>, Option<Certificates>),
    ) -> io::Result<MetricsPort> {
        let names = cluster.datacenters.iter().map(|datacenter| datacenter.name.clone());
        let own = cluster.own_datacenter().name.clone();
        let title = Title {
            peers: names.filter(|name| *name != own).collect(),
            datacenter: own,
            node: cluster.node,
            keyspaces: config.protocols.len(),
            started_s: wall_ms() as f64 / 1e3 - clock.monotonic_us() as f64 / 1e6,
        };
        let address = socket.local_addr()?;
        let patience = Duration::from_millis(config.request_timeout_ms + OBSERVATION_WAIT_MS);
        let hosts = cluster.own_datacenter().nodes.iter().map(|node| &node.host);
        let site = Arc::new(Site {
            title,
            database: database(config, cluster),
            watch: Watch::new(Arc::clone(&inbox), config.request_timeout_ms),
            visits: Visits { inbox, address, patience },
            hosts: Hosts::new(hosts.chain(&config.metrics_hosts)),
            certificates: certificates.filter(|_| config.metrics_tls),
            began: Instant::now(),
            open: config.metrics_unauthenticated,
            draining: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
        });
        let accepting = Arc::clone(&site);
        thread::Builder::new().name("ensue-metrics".into()).spawn(move || accept(&socket, &accepting))?;
        Ok(MetricsPort { site, address })
    }

    /// The node is not ready from now on.
    pub(crate) fn drain(&self) {
        self.site.draining.store(true, Ordering::Relaxed);
    }
}

impl Drop for MetricsPort {
    fn drop(&mut self) {
        self.site.stopping.store(true, Ordering::Relaxed);
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        // The thread that accepts looks when somebody comes. If nobody can, it has ended, or ends with the process.
        let address = SocketAddr::new(ip, self.address.port());
        let _ = TcpStream::connect_timeout(&address, Duration::from_millis(METRICS_DRAIN_MS));
    }
}

/// The hosts of the datacenter's nodes as the configuration has them, and where this one takes clients.
fn database(config: &Config, cluster: &Cluster) -> Database {
    let bound = config.bind.iter().map(|word| word.trim_start_matches('-').to_owned());
    let mut hosts: Vec<String> = bound.filter(|word| word != "*").collect();
    hosts.extend(cluster.own_datacenter().nodes.iter().map(|node| node.host.clone()));
    let mut known = BTreeSet::new();
    hosts.retain(|host| known.insert(host.clone()));
    Database { name: cluster.name.clone(), hosts, port: config.port }
}

fn accept(socket: &TcpListener, site: &Arc<Site>) {
    for stream in socket.incoming() {
        if site.stopping.load(Ordering::Relaxed) {
            return;
        }
        match stream.and_then(|stream| Ok((stream.peer_addr()?, stream))) {
            Ok((from, stream)) if site.connections.load(Ordering::Relaxed) >= most(from) => {
                turn_away(&stream, site);
            }
            Ok((from, stream)) => begin(stream, from, site),
            // No file descriptors are left, or the client is gone already.
            Err(error) => {
                log::debug(format_args!("metrics port: {error}"));
                thread::sleep(Duration::from_micros(ACCEPT_PAUSE_US));
            }
        }
    }
}

/// How many connections there may be for another one from there: other machines leave some to this one.
fn most(from: SocketAddr) -> usize {
    METRICS_CONNECTIONS_MAX - if is_loopback(from.ip()) { 0 } else { METRICS_LOCAL_CONNECTIONS }
}

/// Answers without waiting for anything; who expects TLS could not read it.
fn turn_away(mut stream: &TcpStream, site: &Site) {
    if site.certificates.is_some() {
        return;
    }
    let answer = Refusal::TooManyConnections.answer();
    let answered = stream.set_nonblocking(true).and_then(|()| stream.write(&answer));
    if answered.is_ok() {
        // What was read does not turn the end of the connection into a reset that takes the answer with it.
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read(&mut [0; METRICS_HEAD_BYTES_MAX]);
    }
}

/// A thread for a connection, which counts as long as it has it.
fn begin(stream: TcpStream, from: SocketAddr, site: &Arc<Site>) {
    site.connections.fetch_add(1, Ordering::Relaxed);
    let serving = Arc::clone(site);
    let thread = thread::Builder::new().name("ensue-metrics-get".into()).spawn(move || {
        if let Err(error) = serve(&stream, from, &serving) {
            log::debug(format_args!("metrics connection: {error}"));
        }
        drop(stream);
        serving.connections.fetch_sub(1, Ordering::Relaxed);
    });
    if let Err(error) = thread {
        log::debug(format_args!("metrics connection: {error}"));
        site.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve(stream: &TcpStream, from: SocketAddr, site: &Site) -> io::Result<()> {
    let tls = site.certificates.as_ref().and_then(Certificates::for_metrics);
    let mut wire = Wire::new(stream, tls).map_err(io::Error::other)?;
    let answer = match receive(&mut wire)? {
        Ok(Some(request)) => answer(site, Asked { request: &request, from }),
        Ok(None) => return Ok(()),
        Err(refusal) => refusal.answer(),
    };
    if !wire.can_answer() {
        return Ok(());
    }
    wire.allow(METRICS_TRANSFER_MS);
    wire.write_all(&answer)?;
    wire.flush()?;
    wire.close(METRICS_DRAIN_MS)
}

/// Reads a request; none if the client closes without one.
fn receive(wire: &mut Wire<'_>) -> io::Result<Result<Option<Request>, Refusal>> {
    wire.allow(METRICS_TRANSFER_MS);
    let mut bytes = Vec::new();
    let mut part = [0; 1 << 10];
    loop {
        let count = match wire.read(&mut part) {
            Ok(0) if bytes.is_empty() => return Ok(Ok(None)),
            Ok(0) => return Ok(Err(Refusal::Malformed("the request ends too early"))),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(Err(Refusal::Timeout)),
            Err(error) => return Err(error),
        };
        bytes.extend_from_slice(&part[..count]);
        match http::parse(&bytes) {
            Ok(None) => {}
            outcome => return Ok(outcome),
        }
    }
}

fn answer(site: &Site, asked: Asked<'_>) -> Vec<u8> {
    match asked.request.path.as_str() {
        // Whoever gates or restarts a process has no password, and learns no more than that it is there.
        "/healthz" => return http::encode(http::OK, http::TEXT, "alive\n"),
        "/readyz" => return readiness(site, asked),
        _ => {}
    }
    if !site.hosts.knows(&asked.request.host) {
        return Refusal::Misdirected.answer();
    }
    if let Some(answer) = browse::answer(site, asked) {
        return answer;
    }
    match access::may_see_figures(site, asked) {
        Ok(()) => figures(site, asked.request),
        Err(refusal) => refusal.answer(),
    }
}

fn readiness(site: &Site, asked: Asked<'_>) -> Vec<u8> {
    let reasons = not_ready(site);
    if reasons.is_empty() {
        return http::encode(http::OK, http::TEXT, "ready\n");
    }
    // What names nobody is told to everybody, and a session could not answer then.
    let is_harmless = site.is_draining() || reasons == [SILENT];
    let is_known = || site.hosts.knows(&asked.request.host) && access::may_see_figures(site, asked).is_ok();
    let body = match is_harmless || is_known() {
        true => format!("not ready: {}\n", reasons.join("; ")),
        false => "not ready\n".into(),
    };
    http::encode(http::UNAVAILABLE, http::TEXT, &body)
}

/// For who may see them.
fn figures(site: &Site, request: &Request) -> Vec<u8> {
    match request.path.as_str() {
        "/metrics" => metrics(site, request),
        "/v1/state" => state(site),
        path => assets::answer(path)
            .or_else(|| availability::answer(site, request))
            .unwrap_or_else(|| Refusal::NotFound.answer()),
    }
}

fn state(site: &Site) -> Vec<u8> {
    let Some((at, observation)) = site.watch.observe_at(Scope::Node) else {
        return Refusal::Silent.answer();
    };
    let observed_s = at.saturating_duration_since(site.began).as_secs_f64();
    let state = state::state(&site.title, &observation, observed_s, site.is_draining());
    http::encode(http::OK, state::JSON, &state.to_string())
}

fn metrics(site: &Site, request: &Request) -> Vec<u8> {
    let Some(observation) = site.watch.observe(Scope::Node) else {
        return Refusal::Silent.answer();
    };
    let page = page::openmetrics(&site.title, observation);
    match request.takes_openmetrics {
        true => http::encode(http::OK, page::OPENMETRICS, &page),
        false => http::encode(http::OK, page::CLASSIC, &page::classic(&page)),
    }
}

/// Why nobody should be sent here; nothing if all is as it should be.
fn not_ready(site: &Site) -> Vec<String> {
    if site.is_draining() {
        return vec!["this node is shutting down".into()];
    }
    match site.watch.observe(Scope::Datacenter) {
        Some(observation) => observation.not_ready.clone(),
        None => vec![SILENT.into()],
    }
}

const SILENT: &str = "the first core of this node does not answer";

#[cfg(test)]
mod tests;
