//! The metrics port: what a node shows of itself to monitoring systems and load balancers, over HTTP.
//!
//! - On `GET /metrics`: the figures of this node, as OpenMetrics or as the older text.
//! - On `GET /healthz`: that the process lives. No core is asked.
//! - On `GET /readyz`: what `ensue_ready` in `INFO` says, and why not.
//! - On `GET /`: a page for people (`assets`), which draws what `GET /v1/state` says (`state`).
//! - On `GET /v1/bdbs…`: what clients that fail over by themselves ask (`availability`).
//!
//! A thread of its own accepts connections, and each has a thread as long as it lasts: there are few, each has a bound
//! in bytes and in time, and one request. Whoever is slow or sends nonsense harms only itself. Cores are asked through
//! an inbox, as other threads ask them, and no more often than `watch` lets.

mod assets;
mod availability;
mod buckets;
mod commands;
mod families;
mod http;
mod page;
mod state;
mod watch;

use crate::bounds::{
    ACCEPT_PAUSE_US, METRICS_CONNECTIONS_MAX, METRICS_DRAIN_MS, METRICS_HEAD_BYTES_MAX, METRICS_TRANSFER_MS,
};
use crate::clock::{Clock, wall_ms};
use crate::config::{Cluster, Config};
use crate::inbox::Inbox;
use crate::listener::is_loopback;
use crate::log;
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

pub(crate) use watch::Question;

/// Who watches a node, and what is shown.
#[derive(Debug)]
struct Site {
    title: Title,
    database: Database,
    watch: Watch,
    /// When the port began.
    began: Instant,
    /// Other machines are answered.
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
        match config.metrics_unauthenticated {
            true => log::warning(format_args!("whoever reaches {address} can read the metrics of this node")),
            false => log::warning(format_args!(
                "`metrics-bind {}`: only this machine is answered without `metrics-unauthenticated yes`",
                config.metrics_bind
            )),
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
        inbox: Arc<Inbox>,
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
        let site = Arc::new(Site {
            title,
            database: database(config, cluster),
            watch: Watch::new(inbox, config.request_timeout_ms),
            began: Instant::now(),
            open: config.metrics_unauthenticated,
            draining: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
        });
        let address = socket.local_addr()?;
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
            Ok((from, stream)) if !site.open && !is_loopback(from.ip()) => {
                turn_away(&stream, Refusal::NotFromHere);
            }
            Ok((_, stream)) if site.connections.load(Ordering::Relaxed) >= METRICS_CONNECTIONS_MAX => {
                turn_away(&stream, Refusal::TooManyConnections);
            }
            Ok((_, stream)) => begin(stream, site),
            // No file descriptors are left, or the client is gone already.
            Err(error) => {
                log::debug(format_args!("metrics port: {error}"));
                thread::sleep(Duration::from_micros(ACCEPT_PAUSE_US));
            }
        }
    }
}

/// Answers without waiting for anything.
fn turn_away(mut stream: &TcpStream, refusal: Refusal) {
    let answered = stream.set_nonblocking(true).and_then(|()| stream.write(&refusal.answer()));
    if answered.is_ok() {
        // What was read does not turn the end of the connection into a reset that takes the answer with it.
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read(&mut [0; METRICS_HEAD_BYTES_MAX]);
    }
}

/// A thread for a connection, which counts as long as it has it.
fn begin(stream: TcpStream, site: &Arc<Site>) {
    site.connections.fetch_add(1, Ordering::Relaxed);
    let serving = Arc::clone(site);
    let thread = thread::Builder::new().name("ensue-metrics-get".into()).spawn(move || {
        if let Err(error) = serve(&stream, &serving) {
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

fn serve(stream: &TcpStream, site: &Site) -> io::Result<()> {
    let answer = match receive(stream)? {
        Ok(Some(request)) => answer(site, &request),
        Ok(None) => return Ok(()),
        Err(refusal) => refusal.answer(),
    };
    send(stream, &answer)?;
    stream.shutdown(Shutdown::Write)?;
    // The client has read the answer when it closes its side; closing ours before could take the answer from it.
    let until = Instant::now() + Duration::from_millis(METRICS_DRAIN_MS);
    let mut rest = [0; METRICS_HEAD_BYTES_MAX];
    while let Some(patience) = left(until) {
        stream.set_read_timeout(Some(patience))?;
        if { stream }.read(&mut rest)? == 0 {
            break;
        }
    }
    Ok(())
}

/// Reads a request; none if the client closes without one.
fn receive(mut stream: &TcpStream) -> io::Result<Result<Option<Request>, Refusal>> {
    let until = Instant::now() + Duration::from_millis(METRICS_TRANSFER_MS);
    let mut bytes = Vec::new();
    let mut part = [0; 1 << 10];
    loop {
        let Some(patience) = left(until) else { return Ok(Err(Refusal::Timeout)) };
        stream.set_read_timeout(Some(patience))?;
        let count = match stream.read(&mut part) {
            Ok(0) if bytes.is_empty() => return Ok(Ok(None)),
            Ok(0) => return Ok(Err(Refusal::Malformed("the request ends too early"))),
            Ok(count) => count,
            Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        bytes.extend_from_slice(&part[..count]);
        match http::parse(&bytes) {
            Ok(None) => {}
            outcome => return Ok(outcome),
        }
    }
}

fn send(mut stream: &TcpStream, answer: &[u8]) -> io::Result<()> {
    let until = Instant::now() + Duration::from_millis(METRICS_TRANSFER_MS);
    let mut rest = answer;
    while !rest.is_empty() {
        let patience = left(until).ok_or(io::ErrorKind::TimedOut)?;
        stream.set_write_timeout(Some(patience))?;
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count..],
            Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// What is left of a time, in steps that a socket takes; nothing when it is over.
fn left(until: Instant) -> Option<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    (left >= Duration::from_millis(1)).then_some(left)
}

fn answer(site: &Site, request: &Request) -> Vec<u8> {
    match request.path.as_str() {
        "/metrics" => metrics(site, request),
        "/healthz" => http::encode(http::OK, http::TEXT, "alive\n"),
        "/readyz" => match not_ready(site) {
            reasons if reasons.is_empty() => http::encode(http::OK, http::TEXT, "ready\n"),
            reasons => {
                let body = format!("not ready: {}\n", reasons.join("; "));
                http::encode(http::UNAVAILABLE, http::TEXT, &body)
            }
        },
        "/v1/state" => state(site),
        path => assets::answer(path)
            .or_else(|| availability::answer(site, request))
            .unwrap_or_else(|| Refusal::NotFound.answer()),
    }
}

fn state(site: &Site) -> Vec<u8> {
    let Some((at, observation)) = site.watch.observe_at(Scope::Node) else {
        return http::encode(http::UNAVAILABLE, http::TEXT, SILENT);
    };
    let observed_s = at.saturating_duration_since(site.began).as_secs_f64();
    let state = state::state(&site.title, &observation, observed_s, site.is_draining());
    http::encode(http::OK, state::JSON, &state.to_string())
}

fn metrics(site: &Site, request: &Request) -> Vec<u8> {
    let Some(observation) = site.watch.observe(Scope::Node) else {
        return http::encode(http::UNAVAILABLE, http::TEXT, SILENT);
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
        None => vec![SILENT.trim_end().into()],
    }
}

const SILENT: &str = "the first core of this node does not answer\n";

#[cfg(test)]
mod tests;
