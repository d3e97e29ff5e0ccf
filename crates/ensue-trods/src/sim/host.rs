//! One server machine: the network's end, the gateway, the TCP stack, and the application.

use super::application::{Application, Style};
use super::content::Object;
use super::random::Random;
use super::tcp::{Offer, Tcp};
use crate::gateway::Trods;
use crate::output::{Now, Output, Side, Verdict};
use crate::packet::{Endpoint, Flags, Packet};
use crate::seq::Seq;
use crate::store::{StoreOp, Ticket};
use std::collections::{BTreeMap, VecDeque};

/// What a machine wants of the world after an input.
#[derive(Debug, Default)]
pub struct Wants {
    /// Packets to clients.
    pub packets: Vec<Vec<u8>>,
    pub stores: Vec<(Ticket, StoreOp)>,
    pub failed: bool,
}

#[derive(Debug)]
pub struct Host {
    pub gateway: Trods,
    pub style: Style,
    pub dead: bool,
    pub cut_until: u64,
    pub application_down_until: u64,
    offer: Offer,
    sockets: BTreeMap<Endpoint, (Tcp, Application)>,
    random: Random,
    complaint: Option<&'static str>,
    /// What the application answered, if it fails by chance.
    answers: Vec<Vec<u8>>,
}

impl Host {
    pub fn new(gateway: Trods, style: Style, offer: Offer, random: Random) -> Self {
        Self {
            gateway,
            style,
            dead: false,
            cut_until: 0,
            application_down_until: 0,
            offer,
            sockets: BTreeMap::new(),
            random,
            complaint: None,
            answers: Vec::new(),
        }
    }

    pub fn is_reachable(&self, now: u64) -> bool {
        !self.dead && now >= self.cut_until
    }

    pub fn has_application(&self, now: u64) -> bool {
        now >= self.application_down_until
    }

    pub fn complaint(&self) -> Option<&'static str> {
        self.complaint
    }

    /// What the application answered, if it fails by chance: one answer an element where each connection has one.
    pub fn answers(&self) -> impl Iterator<Item = &[u8]> {
        self.answers.iter().map(Vec::as_slice)
    }

    /// Whether the TCP stack has an open connection of this client.
    pub fn holds(&self, client: Endpoint) -> bool {
        self.sockets.get(&client).is_some_and(|(tcp, _)| !tcp.is_closed() && !tcp.is_reset())
    }

    /// When the next timer of the TCP stack runs out.
    pub fn timer(&self) -> Option<u64> {
        if self.dead {
            return None;
        }
        self.sockets.values().filter_map(|(tcp, _)| tcp.timer()).min()
    }

    /// The application dies: its connections are reset or closed by the kernel.
    pub fn kill_application(&mut self, now: u64, until: u64, reset: bool, objects: &[Object]) -> Wants {
        self.application_down_until = until;
        let mut sent = Vec::new();
        if reset {
            for (mut tcp, _) in std::mem::take(&mut self.sockets).into_values() {
                tcp.abort(now, &mut sent);
            }
        } else {
            for (tcp, _) in self.sockets.values_mut() {
                tcp.cut_off();
                tcp.poll(now, &mut sent);
            }
        }
        self.run(now, sent.into_iter().map(|packet| (Side::Server, packet.build())).collect(), objects)
    }

    pub fn on_packet(&mut self, now: u64, bytes: Vec<u8>, objects: &[Object]) -> Wants {
        self.run(now, VecDeque::from([(Side::Client, bytes)]), objects)
    }

    pub fn on_timer(&mut self, now: u64, objects: &[Object]) -> Wants {
        let mut sent = Vec::new();
        for (tcp, _) in self.sockets.values_mut() {
            tcp.on_timer(now, &mut sent);
        }
        self.run(now, sent.into_iter().map(|packet| (Side::Server, packet.build())).collect(), objects)
    }

    pub fn act(&mut self, now: u64, objects: &[Object], act: impl FnOnce(&mut Trods)) -> Wants {
        act(&mut self.gateway);
        let mut wants = Wants::default();
        let mut queue = VecDeque::new();
        self.drain(None, &mut queue, &mut wants);
        self.deliver(now, queue, &mut wants, objects);
        wants
    }

    fn run(&mut self, now: u64, queue: VecDeque<(Side, Vec<u8>)>, objects: &[Object]) -> Wants {
        let mut wants = Wants::default();
        self.through(now, queue, &mut wants, objects);
        wants
    }

    /// Hands packets to the gateway, and what it passes to the stack, until all is quiet.
    fn through(
        &mut self,
        now: u64,
        mut packets: VecDeque<(Side, Vec<u8>)>,
        wants: &mut Wants,
        objects: &[Object],
    ) {
        while let Some((side, bytes)) = packets.pop_front() {
            self.gateway.on_packet(Now(now), side, &bytes);
            let mut passed = VecDeque::new();
            self.drain(Some((side, bytes)), &mut passed, wants);
            packets.extend(self.stack(now, passed, wants, objects));
        }
    }

    fn deliver(
        &mut self,
        now: u64,
        passed: VecDeque<(Side, Vec<u8>)>,
        wants: &mut Wants,
        objects: &[Object],
    ) {
        let answers = self.stack(now, passed, wants, objects);
        self.through(now, answers, wants, objects);
    }

    /// Takes the outputs of the gateway: packets by the side they go to.
    fn drain(
        &mut self,
        given: Option<(Side, Vec<u8>)>,
        passed: &mut VecDeque<(Side, Vec<u8>)>,
        wants: &mut Wants,
    ) {
        let mut given = given;
        while let Some(output) = self.gateway.next_output() {
            match output {
                Output::Verdict(verdict) => {
                    let (side, bytes) = given.take().expect("one verdict a packet");
                    match verdict {
                        Verdict::Accept => passed.push_back((side.other(), bytes)),
                        Verdict::Replace(bytes) => passed.push_back((side.other(), bytes)),
                        Verdict::Drop => {}
                    }
                }
                Output::Inject { side, bytes } => passed.push_back((side, bytes)),
                Output::Store { ticket, op } => wants.stores.push((ticket, op)),
                Output::ApplicationFailed => wants.failed = true,
            }
        }
        assert!(given.is_none(), "a packet had no verdict");
    }

    /// What the stack answers to packets that reached it; those for clients go to the network.
    fn stack(
        &mut self,
        now: u64,
        passed: VecDeque<(Side, Vec<u8>)>,
        wants: &mut Wants,
        objects: &[Object],
    ) -> VecDeque<(Side, Vec<u8>)> {
        let mut answers = Vec::new();
        for (side, bytes) in passed {
            if side == Side::Client {
                wants.packets.push(bytes);
                continue;
            }
            match Packet::parse(&bytes) {
                Ok(packet) => self.on_stack(now, &packet, &mut answers, objects),
                Err(_) => self.complaint = Some("the gateway passed a broken packet"),
            }
        }
        answers.into_iter().map(|packet: Packet| (Side::Server, packet.build())).collect()
    }

    fn on_stack(&mut self, now: u64, packet: &Packet, out: &mut Vec<Packet>, objects: &[Object]) {
        let has_application = self.has_application(now);
        if packet.has(Flags::SYN) && has_application {
            let stale =
                self.sockets.get(&packet.source).is_some_and(|(tcp, _)| tcp.is_closed() || tcp.is_reset());
            if stale {
                self.sockets.remove(&packet.source);
            }
            if !self.sockets.contains_key(&packet.source) {
                let first = Seq(u32::try_from(self.random.next() >> 32).unwrap_or(0));
                let tcp = Tcp::accept(now, packet, first, self.offer, out);
                self.sockets.insert(packet.source, (tcp, Application::default()));
                return;
            }
        }
        let Some((tcp, application)) = self.sockets.get_mut(&packet.source) else {
            if !packet.has(Flags::RST) {
                let mut reset = Packet::acknowledgment(
                    packet.destination,
                    packet.source,
                    packet.ack,
                    packet.payload_end(),
                );
                reset.flags = Flags::RST.with(Flags::ACK);
                out.push(reset);
            }
            return;
        };
        tcp.on_packet(now, packet, out);
        let bytes = tcp.read();
        if has_application && !bytes.is_empty() {
            let (answer, close) = application.on_bytes(&bytes, now, &self.style, objects);
            tcp.write(&answer);
            if self.style.ill_permille > 0 {
                self.answers.push(answer);
            }
            if close {
                tcp.close();
            }
        }
        if tcp.is_ended() {
            tcp.close();
        }
        tcp.poll(now, out);
        self.complaint = self.complaint.or(tcp.complaint());
        if tcp.is_reset() {
            self.sockets.remove(&packet.source);
        }
    }
}
