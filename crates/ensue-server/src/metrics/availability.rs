//! Whether clients should come here, in the words that those ask which fail over between datacenters by themselves.
//!
//! - On `GET /v1/bdbs`: the one database that there is, and where it is reached.
//! - On `GET /v1/bdbs/1/availability`, or `/v1/local/bdbs/1/endpoint/availability`: 200 if this datacenter answers for
//!   all keys and takes writes, else 503 and why not.
//! - With `extend_check=lag`: also 503 if what it shows of a datacenter that it reaches is later than
//!   `availability_lag_tolerance_ms`. Of one that it does not reach nobody here knows how late it is, and it may be the
//!   very one that failed: it does not count.
//!
//! The paths and the answers are those of Redis Enterprise's interface, which redis-py, Jedis and Lettuce poll.

use super::Site;
use super::http::{self, Request};
use super::state::JSON;
use ensue_node::{Observation, Scope};
use serde_json::{Value, json};

/// Where the database is reached, as its endpoints say.
#[derive(Clone, Debug)]
pub(super) struct Database {
    pub(super) name: String,
    /// Hosts by which clients may know it, but for that of the request.
    pub(super) hosts: Vec<String>,
    pub(super) port: u16,
}

/// The number of the one database.
const UID: u64 = 1;
/// What Redis Enterprise tolerates where nothing is said.
const TOLERANCE_MS: i64 = 100;

/// The answer to a path of this interface; nothing if it is none.
pub(super) fn answer(site: &Site, request: &Request) -> Option<Vec<u8>> {
    let parts: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
    match parts[..] {
        ["v1", "bdbs"] => Some(http::encode(http::OK, JSON, &databases(&site.database, request).to_string())),
        ["v1", "bdbs", uid, "availability"] | ["v1", "local", "bdbs", uid, "endpoint", "availability"] => {
            let (status, body) = match availability(site, uid, request) {
                Ok(()) => (http::OK, json!({})),
                Err(refusal) => (refusal.status, refusal.body()),
            };
            Some(http::encode(status, JSON, &body.to_string()))
        }
        _ => None,
    }
}

/// Why a database is not available, or the question not one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unavailable {
    status: &'static str,
    code: &'static str,
    description: String,
}

impl Unavailable {
    fn body(self) -> Value {
        json!({ "error_code": self.code, "description": self.description })
    }
}

fn databases(database: &Database, request: &Request) -> Value {
    let Database { name, hosts, port } = database;
    let mut addresses: Vec<&str> = hosts.iter().map(String::as_str).collect();
    if !request.host.is_empty() && !addresses.contains(&request.host.as_str()) {
        addresses.push(&request.host);
    }
    let dns_name = if request.host.is_empty() { addresses.first().copied() } else { Some(&*request.host) };
    json!([{
        "uid": UID,
        "name": name,
        "status": "active",
        "endpoints": [{ "uid": "1:1", "dns_name": dns_name.unwrap_or(""), "addr": addresses, "port": port }],
    }])
}

fn availability(site: &Site, uid: &str, request: &Request) -> Result<(), Unavailable> {
    if uid.parse() != Ok(UID) {
        let description = format!("there is one database, and its number is {UID}");
        return Err(Unavailable { status: "404 Not Found", code: "db_not_found", description });
    }
    let tolerance_ms = tolerance_ms(request)?;
    let down =
        |description: String| Unavailable { status: http::UNAVAILABLE, code: "bdb_unavailable", description };
    if site.is_draining() {
        return Err(down("this node is shutting down".into()));
    }
    let observation = site.watch.observe(Scope::Datacenter);
    let observation =
        observation.ok_or_else(|| down("the first core of this node does not answer".into()))?;
    let wrong = shortcomings(&observation);
    if !wrong.is_empty() {
        return Err(down(wrong.join("; ")));
    }
    let late = tolerance_ms.map_or(Vec::new(), |most_ms| late(&observation, &site.title.peers, most_ms));
    match late.is_empty() {
        true => Ok(()),
        false => Err(Unavailable { code: "lag", ..down(late.join("; ")) }),
    }
}

/// How late what is shown may be; nothing if nobody wants to know.
fn tolerance_ms(request: &Request) -> Result<Option<i64>, Unavailable> {
    let bad = |description: &str| Unavailable {
        status: "400 Bad Request",
        code: "invalid_param",
        description: description.into(),
    };
    let mut tolerance_ms = TOLERANCE_MS;
    let mut wants_lag = false;
    for (name, value) in &request.query {
        match name.as_str() {
            "extend_check" if value == "lag" => wants_lag = true,
            "extend_check" => return Err(bad("the only 'extend_check' is 'lag'")),
            "availability_lag_tolerance_ms" | "availability_lag_tolerance" => {
                let parsed = value.parse().ok().filter(|ms: &i64| *ms >= 0);
                tolerance_ms = parsed.ok_or_else(|| bad("the tolerance is no number of milliseconds"))?;
            }
            _ => {}
        }
    }
    Ok(wants_lag.then_some(tolerance_ms))
}

/// Why this datacenter does not answer for all keys, or takes no writes.
fn shortcomings(observation: &Observation) -> Vec<String> {
    let refusing = [
        ("disk_full", "partitions take no writes: their disk is full"),
        ("clock_ahead", "partitions take no writes: their clock is ahead"),
    ];
    let refusing = refusing.iter().filter(|(name, _)| observation.metric(name) > 0);
    let refusing = refusing.map(|(name, what)| format!("{} {what}", observation.metric(name)));
    observation.not_serving.iter().cloned().chain(refusing).collect()
}

/// The datacenters that are reached and of which what is shown here is too late.
fn late(observation: &Observation, peers: &[String], most_ms: i64) -> Vec<String> {
    let is_reached = |peer: &&String| {
        let link = observation.links.iter().find(|link| link.datacenter == **peer);
        link.is_some_and(|link| link.up == link.links)
    };
    let lag = |peer: &String| {
        let late_ms = observation.metric(&format!("behind_{peer}_ms_max"));
        (late_ms > most_ms).then(|| format!("{late_ms} ms behind {peer}, and {most_ms} are tolerated"))
    };
    peers.iter().filter(is_reached).filter_map(lag).collect()
}

#[cfg(test)]
mod tests;
