//! An ordinary TCP endpoint, which knows nothing of gateways: what a client or a server has in its kernel.
//!
//! It has what a gateway must keep intact: three-way handshake, segment size, window scaling, timestamps with PAWS
//! (RFC 7323), selective acknowledgment (RFC 2018), retransmission after 200 ms doubled each time, fast retransmission,
//! slow start, FIN in both directions, and resets, which it believes only at the exact number (RFC 5961). As Linux
//! does, it takes data from a segment whose acknowledgment is old. It does without delayed acknowledgments and closed
//! windows: its application reads at once.

use crate::packet::{Endpoint, Flags, Options, Packet, Timestamps};
use crate::seq::Seq;
use std::collections::{BTreeMap, VecDeque};

const RTO_SYN_US: u64 = 1_000_000;
const RTO_US_MIN: u64 = 200_000;
const RTO_US_MAX: u64 = 10_000_000;
const WINDOW_BYTES: u32 = 64 << 10;
const SEGMENTS_INITIAL: u64 = 10;
const DUPLICATES: u32 = 3;
const BLOCKS_SENT_MAX: usize = 3;
/// Packets share a timestamp until an echo arrives, so an echo may be older than what it is for.
const ECHO_SLACK_MS: u32 = 5_000;

/// What an endpoint offers in its SYN.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    pub stamps: bool,
    pub sack: bool,
    pub scale: Option<u8>,
    /// The largest segment that it receives.
    pub segment: u16,
    /// What its timestamp clock shows at time 0, in milliseconds.
    pub clock: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    SynSent,
    SynReceived,
    Open,
    Reset,
}

/// One end of a connection. Offsets count from the first byte after SYN.
#[derive(Debug)]
pub struct Tcp {
    near: Endpoint,
    far: Endpoint,
    offer: Offer,
    state: State,
    send_first: Seq,
    receive_first: Seq,
    queue: VecDeque<u8>,
    /// The ends of segments that are not acknowledged, each with what the clock showed when it was sent first.
    sent: VecDeque<(u64, u32)>,
    unacknowledged: u64,
    next: u64,
    sent_max: u64,
    end: Option<u64>,
    received: u64,
    out_of_order: BTreeMap<u64, Vec<u8>>,
    far_end: Option<u64>,
    inbox: Vec<u8>,
    window: u64,
    window_scale: u8,
    own_scale: u8,
    segment: usize,
    stamps: bool,
    sack: bool,
    sacked: Vec<(u64, u64)>,
    stamp_recent: u32,
    rto_us: u64,
    timer: Option<u64>,
    duplicates: u32,
    congestion: u64,
    recovery: Option<u64>,
    /// What no ordinary peer does; a sign that a splice is wrong.
    complaint: Option<&'static str>,
}

impl Tcp {
    fn new(near: Endpoint, far: Endpoint, first: Seq, offer: Offer, state: State) -> Self {
        Self {
            near,
            far,
            offer,
            state,
            send_first: first.plus(1),
            receive_first: Seq(0),
            queue: VecDeque::new(),
            sent: VecDeque::new(),
            unacknowledged: 0,
            next: 0,
            sent_max: 0,
            end: None,
            received: 0,
            out_of_order: BTreeMap::new(),
            far_end: None,
            inbox: Vec::new(),
            window: 0,
            window_scale: 0,
            own_scale: 0,
            segment: usize::from(offer.segment),
            stamps: offer.stamps,
            sack: offer.sack,
            sacked: Vec::new(),
            stamp_recent: 0,
            rto_us: RTO_SYN_US,
            timer: None,
            duplicates: 0,
            congestion: SEGMENTS_INITIAL * u64::from(offer.segment),
            recovery: None,
            complaint: None,
        }
    }

    /// Opens a connection: sends SYN.
    pub fn connect(
        now: u64,
        near: Endpoint,
        far: Endpoint,
        first: Seq,
        offer: Offer,
        out: &mut Vec<Packet>,
    ) -> Self {
        let mut tcp = Self::new(near, far, first, offer, State::SynSent);
        tcp.send_syn(now, out);
        tcp
    }

    /// Answers a SYN.
    pub fn accept(now: u64, syn: &Packet, first: Seq, offer: Offer, out: &mut Vec<Packet>) -> Self {
        let mut tcp = Self::new(syn.destination, syn.source, first, offer, State::SynReceived);
        tcp.take_syn(syn);
        tcp.send_syn(now, out);
        tcp
    }

    pub fn is_reset(&self) -> bool {
        self.state == State::Reset
    }

    /// Whether the peer has sent FIN and everything before it was read.
    pub fn is_ended(&self) -> bool {
        self.far_end == Some(self.received)
    }

    /// Whether both directions are closed and acknowledged.
    pub fn is_closed(&self) -> bool {
        self.is_ended() && self.end.is_some_and(|end| self.unacknowledged > end)
    }

    pub fn complaint(&self) -> Option<&'static str> {
        self.complaint
    }

    pub fn timer(&self) -> Option<u64> {
        self.timer.filter(|_| self.state != State::Reset)
    }

    pub fn read(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.inbox)
    }

    pub fn write(&mut self, bytes: &[u8]) {
        if self.end.is_none() {
            self.queue.extend(bytes);
        }
    }

    pub fn close(&mut self) {
        let end = self.unacknowledged + self.queue.len() as u64;
        self.end.get_or_insert(end);
    }

    /// The application died: what it wrote and was never sent is lost, and the kernel sends FIN.
    pub fn cut_off(&mut self) {
        if self.end.is_none() {
            let kept = usize::try_from(self.sent_max - self.unacknowledged).expect("at most the queue");
            self.queue.truncate(kept);
            self.close();
        }
    }

    /// The application died with bytes unread: the kernel resets.
    pub fn abort(&mut self, now: u64, out: &mut Vec<Packet>) {
        let mut reset = self.packet(now, self.next);
        reset.flags = Flags::RST.with(Flags::ACK);
        out.push(reset);
        self.state = State::Reset;
    }

    fn clock(&self, now: u64) -> u32 {
        u32::try_from(now / 1000 % (1 << 32)).expect("below 2^32").wrapping_add(self.offer.clock)
    }

    fn packet(&self, now: u64, offset: u64) -> Packet {
        let ack = self.received + u64::from(self.is_ended());
        let mut packet = Packet::acknowledgment(
            self.near,
            self.far,
            self.send_first.plus(offset),
            self.receive_first.plus(ack),
        );
        packet.window = u16::try_from(WINDOW_BYTES >> self.own_scale).unwrap_or(u16::MAX);
        if self.stamps {
            packet.options.timestamps = Some(Timestamps { value: self.clock(now), echo: self.stamp_recent });
        }
        packet
    }

    fn send_syn(&mut self, now: u64, out: &mut Vec<Packet>) {
        let mut packet = self.packet(now, 0);
        packet.seq = self.send_first.minus(1);
        packet.flags = match self.state {
            State::SynSent => Flags::SYN,
            _ => Flags::SYN.with(Flags::ACK),
        };
        packet.window = u16::MAX;
        packet.options = Options {
            segment_size: Some(self.offer.segment),
            window_scale: self.offer.scale,
            sack_permitted: self.sack,
            timestamps: packet.options.timestamps,
            ..Options::default()
        };
        out.push(packet);
        self.timer = Some(now + self.rto_us);
    }

    fn take_syn(&mut self, syn: &Packet) {
        self.receive_first = syn.seq.plus(1);
        self.segment = usize::from(syn.options.segment_size.unwrap_or(536)).min(self.segment);
        self.stamps &= syn.options.timestamps.is_some();
        self.sack &= syn.options.sack_permitted;
        self.window = u64::from(syn.window);
        self.stamp_recent = syn.options.timestamps.map_or(0, |stamps| stamps.value);
        match (self.offer.scale, syn.options.window_scale) {
            (Some(own), Some(far)) => (self.own_scale, self.window_scale) = (own, far),
            _ => self.offer.scale = None,
        }
    }

    /// Takes a packet and answers it.
    pub fn on_packet(&mut self, now: u64, packet: &Packet, out: &mut Vec<Packet>) {
        if self.state == State::Reset {
            return;
        }
        if packet.has(Flags::SYN) {
            return self.on_syn(now, packet, out);
        }
        if self.state == State::SynSent && packet.has(Flags::ACK) && packet.ack != self.send_first {
            // A connection of somebody else between these ends (RFC 9293, 3.10.7.3).
            let mut reset = self.packet(now, 0);
            (reset.seq, reset.flags) = (packet.ack, Flags::RST);
            return out.push(reset);
        }
        let Some(start) = packet.seq.offset(self.receive_first, self.received) else { return };
        let in_window = start <= self.received + u64::from(WINDOW_BYTES);
        if packet.has(Flags::RST) {
            // Only the exact number ends the connection; another one in the window is asked about (RFC 5961, 3.2).
            if start == self.received + u64::from(self.is_ended()) {
                self.state = State::Reset;
            } else if in_window && start >= self.received && self.state != State::SynSent {
                out.push(self.acknowledgment(now));
            }
            return;
        }
        if self.state == State::SynSent || !packet.has(Flags::ACK) {
            return;
        }
        let stamps = packet.options.timestamps.filter(|_| self.stamps);
        if stamps.is_some_and(|stamps| is_later(self.stamp_recent, stamps.value)) || !in_window {
            out.push(self.acknowledgment(now));
            return;
        }
        if let Some(stamps) = stamps {
            if start <= self.received {
                self.stamp_recent = stamps.value;
            }
            self.measure(now, stamps.echo);
        }
        if !self.take_ack(now, packet, out) {
            return;
        }
        let before = self.received;
        let length = packet.payload.len() as u64;
        if length > 0 {
            self.take_payload(start, &packet.payload);
        }
        if packet.has(Flags::FIN) {
            self.far_end = Some(start + length);
        }
        if length > 0 || packet.has(Flags::FIN) || (before != self.received) || start < self.received {
            out.push(self.acknowledgment(now));
        }
        self.poll(now, out);
    }

    fn on_syn(&mut self, now: u64, packet: &Packet, out: &mut Vec<Packet>) {
        match self.state {
            State::SynSent if packet.has(Flags::ACK) && packet.ack == self.send_first => {
                self.take_syn(packet);
                self.state = State::Open;
                (self.timer, self.rto_us) = (None, RTO_US_MIN);
                out.push(self.acknowledgment(now));
                self.poll(now, out);
            }
            State::SynReceived if !packet.has(Flags::ACK) && packet.seq.plus(1) == self.receive_first => {
                self.send_syn(now, out);
            }
            State::SynSent => {}
            _ => out.push(self.acknowledgment(now)),
        }
    }

    /// An echo is a value that this end has sent.
    fn measure(&mut self, now: u64, echo: u32) {
        if is_later(echo, self.clock(now)) {
            self.complaint = Some("an echo of a timestamp from the future");
        }
    }

    /// Whether the packet is to be read on.
    fn take_ack(&mut self, now: u64, packet: &Packet, out: &mut Vec<Packet>) -> bool {
        let Some(ack) = packet.ack.offset(self.send_first, self.unacknowledged) else { return false };
        if self.state == State::SynReceived {
            (self.state, self.timer, self.rto_us) = (State::Open, None, RTO_US_MIN);
        }
        if ack > self.sent_max {
            self.complaint = Some("an acknowledgment of what was never sent");
            out.push(self.acknowledgment(now));
            return false;
        }
        self.window = u64::from(packet.window) << self.window_scale;
        self.take_sacks(packet);
        if ack > self.unacknowledged {
            self.judge_echo(ack, packet);
            let data = (ack - self.unacknowledged).min(self.queue.len() as u64);
            self.queue.drain(..usize::try_from(data).expect("at most the queue"));
            self.unacknowledged = ack;
            self.next = self.next.max(ack);
            self.duplicates = 0;
            self.rto_us = RTO_US_MIN;
            self.timer = (ack < self.sent_max).then_some(now + self.rto_us);
            self.congestion += self.segment as u64;
            self.sacked.retain(|(_, after)| *after > ack);
            match self.recovery {
                Some(until) if ack < until => self.retransmit(now, out),
                _ => self.recovery = None,
            }
        } else if ack == self.unacknowledged && packet.payload.is_empty() && self.sent_max > ack {
            self.duplicates += 1;
            if self.duplicates == DUPLICATES && self.recovery.is_none() {
                self.recovery = Some(self.sent_max);
                self.congestion = (self.congestion / 2).max(2 * self.segment as u64);
                self.retransmit(now, out);
            }
        }
        true
    }

    /// An echo that comes with an acknowledgment was sent no earlier than the first byte that it acknowledges;
    /// otherwise the round trip that is measured has nothing to do with the path.
    fn judge_echo(&mut self, ack: u64, packet: &Packet) {
        let stamps = packet.options.timestamps.filter(|_| self.stamps);
        if let (Some((_, sent)), Some(stamps)) = (self.sent.front(), stamps) {
            if is_later(*sent, stamps.echo.wrapping_add(ECHO_SLACK_MS)) {
                self.complaint = Some("an echo of a timestamp from long ago");
            }
        }
        while self.sent.front().is_some_and(|(end, _)| *end <= ack) {
            self.sent.pop_front();
        }
    }

    fn take_sacks(&mut self, packet: &Packet) {
        for (first, after) in &packet.options.sacks {
            let near = self.unacknowledged;
            let ends = (first.offset(self.send_first, near), after.offset(self.send_first, near));
            let (Some(first), Some(after)) = ends else { continue };
            if after > self.sent_max || first >= after {
                self.complaint = Some("a selective acknowledgment of what was never sent");
            } else if !self.sacked.contains(&(first, after)) {
                self.sacked.push((first, after));
            }
        }
        let count = self.sacked.len();
        self.sacked.drain(..count.saturating_sub(64));
    }

    fn take_payload(&mut self, start: u64, payload: &[u8]) {
        self.out_of_order.entry(start).or_insert_with(|| payload.to_vec());
        if self.out_of_order[&start].len() < payload.len() {
            self.out_of_order.insert(start, payload.to_vec());
        }
        while let Some((&start, _)) = self.out_of_order.first_key_value() {
            if start > self.received {
                break;
            }
            let (_, bytes) = self.out_of_order.pop_first().expect("there is a first one");
            let known = usize::try_from(self.received - start).unwrap_or(usize::MAX);
            if let Some(fresh) = bytes.get(known..) {
                self.inbox.extend_from_slice(fresh);
                self.received += fresh.len() as u64;
            }
        }
    }

    fn acknowledgment(&self, now: u64) -> Packet {
        let mut packet = self.packet(now, self.next);
        self.tell_blocks(&mut packet);
        packet
    }

    fn tell_blocks(&self, packet: &mut Packet) {
        if self.sack {
            let mut blocks: Vec<(u64, u64)> = Vec::new();
            for (start, bytes) in &self.out_of_order {
                let after = start + bytes.len() as u64;
                match blocks.last_mut() {
                    Some(last) if last.1 >= *start => last.1 = last.1.max(after),
                    _ => blocks.push((*start, after)),
                }
            }
            let edge = |offset: u64| self.receive_first.plus(offset);
            packet.options.sacks = blocks
                .into_iter()
                .take(BLOCKS_SENT_MAX)
                .map(|(first, after)| (edge(first), edge(after)))
                .collect();
        }
    }

    /// Sends what the windows allow.
    pub fn poll(&mut self, now: u64, out: &mut Vec<Packet>) {
        if self.state != State::Open {
            return;
        }
        let allowed = self.unacknowledged + self.window.min(self.congestion).max(1);
        let data_end = self.unacknowledged + self.queue.len() as u64;
        loop {
            if self.end.is_some_and(|end| self.next > end) {
                break;
            }
            let stamps = if self.stamps { 12 } else { 0 };
            let room = (self.segment - stamps) as u64;
            let length = data_end.saturating_sub(self.next).min(room).min(allowed.saturating_sub(self.next));
            let fin = self.end == Some(self.next + length);
            if length == 0 && !fin {
                break;
            }
            self.transmit(now, self.next, length, fin, out);
            self.next += length + u64::from(fin);
            self.sent.push_back((self.next, self.clock(now)));
            self.sent_max = self.sent_max.max(self.next);
        }
        if self.unacknowledged < self.sent_max && self.timer.is_none() {
            self.timer = Some(now + self.rto_us);
        }
    }

    fn transmit(&self, now: u64, offset: u64, length: u64, fin: bool, out: &mut Vec<Packet>) {
        let mut packet = self.packet(now, offset);
        let from = usize::try_from(offset - self.unacknowledged).expect("in the queue");
        let count = usize::try_from(length).expect("a segment");
        packet.payload = self.queue.iter().skip(from).take(count).copied().collect();
        // As Linux does, where they fit.
        if packet.payload.len() < self.segment / 2 {
            self.tell_blocks(&mut packet);
        }
        if fin {
            packet.flags = packet.flags.with(Flags::FIN);
        }
        out.push(packet);
    }

    /// Sends the first segment again that the peer does not have.
    fn retransmit(&mut self, now: u64, out: &mut Vec<Packet>) {
        let data_end = self.unacknowledged + self.queue.len() as u64;
        let start = self.unacknowledged;
        let hole = self.sacked.iter().map(|(first, _)| *first).filter(|first| *first > start).min();
        let end = hole.unwrap_or(u64::MAX).min(data_end).min(self.sent_max);
        let stamps = if self.stamps { 12 } else { 0 };
        let length = end.saturating_sub(start).min((self.segment - stamps) as u64);
        let fin = self.end == Some(start + length) && self.sent_max > start + length;
        if length > 0 || fin {
            self.transmit(now, start, length, fin, out);
        }
    }

    /// The retransmission timer ran out.
    pub fn on_timer(&mut self, now: u64, out: &mut Vec<Packet>) {
        if self.timer.is_none_or(|at| at > now) {
            return;
        }
        self.rto_us = (self.rto_us * 2).min(RTO_US_MAX);
        match self.state {
            State::SynSent | State::SynReceived => self.send_syn(now, out),
            State::Open if self.unacknowledged < self.sent_max => {
                self.congestion = self.segment as u64;
                self.recovery = Some(self.sent_max);
                self.duplicates = 0;
                self.sacked.clear();
                self.timer = Some(now + self.rto_us);
                self.retransmit(now, out);
            }
            State::Open | State::Reset => self.timer = None,
        }
    }
}

fn is_later(one: u32, other: u32) -> bool {
    (one.wrapping_sub(other) as i32) > 0
}
