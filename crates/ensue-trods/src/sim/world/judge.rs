//! What of a world is a failure: what clients noticed, and what gateways and store still know, except what the
//! [threat model](../../../../docs/gateway-trods.md#threat-model) gives up in such a world.

use super::{Peer, World};
use crate::config::Mode;
use crate::http;
use crate::sim::application::ILL_LINE;
use crate::sim::client::Trouble;
use crate::sim::content::Object;
use crate::sim::host::Host;
use crate::sim::tcp::Tcp;
use crate::stamp::{UNIT_BYTES, UNITS};
use std::collections::BTreeMap;

/// How the answer begins that timestamps can hold.
const WHOLE: &[u8] = b"HTTP/1.1 200";

impl World<'_> {
    pub(super) fn failure(&self) -> Option<String> {
        for (index, peer) in self.peers.iter().enumerate() {
            let has_faults = self.has_faults(peer);
            let may_break = self.plan.harm.breaks(has_faults, self.plan.mode);
            match &peer.failure {
                Some(Trouble::Wrong(failure)) if !(has_faults && self.is_mixed(peer)) => {
                    return Some(format!("client {}: {failure}", index + 1));
                }
                Some(Trouble::Broken(failure)) if !may_break => {
                    return Some(format!("client {}: {failure}", index + 1));
                }
                Some(Trouble::Wrong(_) | Trouble::Broken(_)) | None => {}
            }
            // A kernel that believes a stranger's SYN answers with the stranger's numbers.
            let has_strangers = self.plan.harm.stranger_permille > 0;
            let complaint = peer.tcp.as_ref().and_then(Tcp::complaint);
            if let Some(complaint) = complaint.filter(|_| !has_strangers) {
                return Some(format!("client {} received {complaint}", index + 1));
            }
            if !peer.application.is_done() && !peer.aborted && !may_break {
                return Some(format!("client {} is stuck", index + 1));
            }
        }
        let complaints = self.hosts.iter().enumerate();
        complaints
            .filter_map(|(index, host)| Some((index, host.complaint()?)))
            .map(|(index, complaint)| format!("server {} received {complaint}", index + 1))
            .next()
            .or_else(|| self.leftover())
    }

    /// Whether another server than the one that answers may have answered this client: servers were harmed, or a
    /// stranger guessed a place of the client's connection, which moves it as a server that is suspected does.
    fn has_faults(&self, peer: &Peer) -> bool {
        let is_moved = self.plan.harm.stranger_permille > 0 && self.moved.contains(&peer.end);
        is_moved || !self.plan.faults.is_empty()
    }

    /// Whether all bytes that a client received are what two servers answered that one request reached. Without a store
    /// nothing arbitrates between them, so an application that fails by chance answers something else.
    fn is_mixed(&self, peer: &Peer) -> bool {
        if self.plan.mode != Mode::Ts || self.plan.harm.ill_permille == 0 {
            return false;
        }
        let Some(object) = peer.application.only_object() else { return false };
        let answers = self.hosts.iter().flat_map(Host::answers).filter(|answer| is_of(answer, object));
        let shown: Vec<Vec<u8>> = answers.flat_map(as_shown).collect();
        is_joined(peer.application.received(), &shown)
    }

    /// What gateways and store still know, if every connection ended on the server where it began.
    pub(super) fn leftover(&self) -> Option<String> {
        if !self.plan.faults.is_empty() {
            return None;
        }
        // The server's TCP holds a connection of a client that died, whose resets were lost or came too early to count.
        let is_dead = |end| self.peers.iter().any(|peer| peer.aborted && peer.end == end);
        let is_held = |host: &Host, end| is_dead(end) && host.holds(end);
        let leaks = |host: &Host| host.gateway.clients().filter(|end| !is_held(host, *end)).count();
        let known: usize = self.hosts.iter().map(leaks).sum();
        if known > 0 {
            return Some(format!("{known} connections are still known"));
        }
        let records: usize = self.records.values().map(BTreeMap::len).sum();
        // A record of a client that died may be saved after its connection is forgotten; and what is found complete is
        // left to its expiry, since the client's last packet may come again.
        let completes = self.hosts.iter().any(|host| host.gateway.counters().found_complete > 0);
        let is_excused = self.plan.harm.fail_permille > 0 || self.plan.harm.abort_at.is_some() || completes;
        let is_kept = records > 0 && !is_excused;
        is_kept.then(|| format!("{records} records are still kept"))
    }
}

/// Whether an application's answer is one to a request for this object: the whole of it, or that it cannot serve.
fn is_of(answer: &[u8], object: &Object) -> bool {
    answer.starts_with(ILL_LINE.as_bytes()) || (answer.starts_with(WHOLE) && answer.ends_with(&object.body()))
}

/// What of an answer a client is shown: itself, or with the head that timestamps can hold.
fn as_shown(answer: &[u8]) -> Vec<Vec<u8>> {
    let mut shown = vec![answer.to_vec()];
    let head = answer.windows(4).position(|window| window == b"\r\n\r\n").map_or(0, |at| at + 4);
    let needed = head.div_ceil(UNIT_BYTES);
    let units = UNITS.into_iter().find(|units| *units >= needed).filter(|_| answer.starts_with(WHOLE));
    let padded = units.and_then(|units| http::padded(&answer[..head], units * UNIT_BYTES));
    shown.extend(padded.map(|padded| [&padded, &answer[head..]].concat()));
    shown
}

/// Whether what was received is the beginning of one answer and goes on, at the same offset, in another.
fn is_joined(received: &[u8], answers: &[Vec<u8>]) -> bool {
    let common =
        |answer: &Vec<u8>| answer.iter().zip(received).take_while(|(one, other)| one == other).count();
    let first = answers.iter().map(common).max().unwrap_or(0);
    // Wherever the second answer takes over, it also holds what is after the longest beginning of a first one.
    let is_rest = |answer: &Vec<u8>| {
        answer.len() >= received.len() && answer[first..received.len()] == received[first..]
    };
    first < received.len() && answers.iter().any(is_rest)
}

#[cfg(test)]
mod tests;
