//! Packets of the client: what of them the server may see, and what they say about the exchange.

use super::exchange::{Answering, Asked, Exchange};
use super::{Connection, Context, Stage};
use crate::http::{self, Head};
use crate::limits::{BODY_BYTES_MAX, RECOVERY_US_MAX, REQUEST_BYTES_MAX, SEQ_AHEAD_MAX, SEQ_BEHIND_MAX};
use crate::output::Side;
use crate::packet::{Flags, Packet, patched};
use crate::seq::Seq;
use crate::stamp::Mark;

impl Connection {
    pub fn on_client(&mut self, bytes: &[u8], packet: Packet, context: &mut Context<'_>) {
        match &mut self.stage {
            Stage::Opening | Stage::Open => self.on_client_open(bytes, packet, context),
            // A packet with bytes of the request is worth more than one without, should the connection be in setup.
            Stage::LookingUp { trigger, .. } if trigger.payload.is_empty() && !packet.has(Flags::RST) => {
                // The packet before may have been a stranger's, with a stranger's timestamps.
                *trigger = packet.clone();
                self.take_up(&packet, context);
            }
            Stage::Connecting(connecting)
                if connecting.trigger.payload.is_empty() && !packet.has(Flags::RST) =>
            {
                connecting.trigger = packet;
            }
            Stage::LookingUp { .. } | Stage::Connecting(_) | Stage::Broken | Stage::Over => {}
        }
    }

    pub(super) fn on_client_open(&mut self, bytes: &[u8], packet: Packet, context: &mut Context<'_>) {
        if packet.has(Flags::RST) {
            return self.on_client_reset(bytes, &packet, context);
        }
        // Of an unprotected connection, the server's TCP judges the place of a packet in its window.
        let plausible = self.is_plausible(packet.seq) || !context.config.rules.check_places;
        let unanswered = matches!(self.stage, Stage::Opening)
            && context.now.0.saturating_sub(self.active.0) > RECOVERY_US_MAX;
        if !plausible && unanswered && packet.has(Flags::ACK) {
            // The SYN was a stranger's, perhaps, who is not to hold up a connection that comes from another server.
            return self.migrate(packet, context);
        }
        if !plausible && !matches!(self.exchange, Exchange::Unprotected) {
            context.out.counters.ignored += 1;
            return;
        }
        let view = packet.ack.offset(self.view_first, self.acked).filter(|_| packet.has(Flags::ACK));
        let Some(view) = view else {
            // Another server's first number, or else an old packet from before this connection was recovered.
            if matches!(self.stage, Stage::Opening) {
                self.migrate(packet, context);
            }
            return;
        };
        let foreign = packet.options.timestamps.is_some_and(|stamps| self.clock.is_foreign(stamps.echo));
        if view > self.view_limit() || foreign {
            // Half of all numbers lie after any other: without a place that fits, it is a stranger's guess.
            if plausible && self.is_movable(&packet) {
                self.migrate(packet, context);
            }
            return;
        }
        self.stage = Stage::Open;
        self.active = context.now;
        self.unconfirmed &= view <= self.acked;
        let sent = packet.payload_end().plus(u64::from(packet.has(Flags::FIN)));
        self.client_sent = self.client_sent.filter(|last| last.is_after(sent)).or(Some(sent));
        self.acked = self.acked.max(view);
        self.observe_client(&packet);
        self.advance(context);
        if self.server_fin.is_some() && matches!(self.exchange, Exchange::Idle(_)) && !self.client_closed {
            // The application is gone after a complete response: what the client asks next is recovered.
            return self.restart(packet, context);
        }
        let mut forwarded = packet.clone();
        self.take_payload(&mut forwarded, context);
        if forwarded.has(Flags::FIN) {
            self.client_closed = true;
        }
        self.translate(&mut forwarded, view, context);
        let fin = u64::from(forwarded.has(Flags::FIN));
        let end = forwarded.payload_end().plus(fin);
        // An acknowledgment says where the client is, and not that what is before it has passed.
        if end != forwarded.seq && end.is_after(self.client_next) {
            self.client_next = end;
        }
        context.out.send(Side::Server, patched(bytes, &packet, &forwarded));
    }

    /// A reset ends the connection if it stands exactly where the client's TCP sends one: after all that it sent, or at
    /// the acknowledgment that it was shown. Anybody can send others (RFC 5961).
    fn on_client_reset(&mut self, bytes: &[u8], packet: &Packet, context: &mut Context<'_>) {
        let exact =
            [self.client_next, self.server_acked].into_iter().chain(self.floor).chain(self.client_sent);
        let is_exact = exact.into_iter().any(|seq| seq == packet.seq) || !context.config.rules.check_places;
        if !is_exact {
            if matches!(self.exchange, Exchange::Unprotected) {
                let mut reset = packet.clone();
                self.translate(&mut reset, self.acked, context);
                return context.out.send(Side::Server, patched(bytes, packet, &reset));
            }
            context.out.counters.ignored += 1;
            if self.is_plausible(packet.seq) {
                // A client whose last packets were lost answers this with a reset at the right place.
                self.acknowledge_client(self.floor.unwrap_or(self.server_acked), context);
            }
            return;
        }
        self.reset_server(context);
        self.delete_record(context);
        if let Exchange::Saving(saving) = &self.exchange {
            self.saved = Some(saving.asked.start);
            self.delete_record(context);
        }
        self.stage = Stage::Over;
    }

    /// Whether the client can have sent a packet that begins here.
    fn is_plausible(&self, seq: Seq) -> bool {
        (-SEQ_BEHIND_MAX..=SEQ_AHEAD_MAX).contains(&seq.since(self.client_next))
    }

    /// Whether a packet can prove that its connection went on elsewhere. One that is passed through has no record, so
    /// a wrong guess loses it: its packet stands exactly where the client's next one does.
    fn is_movable(&self, packet: &Packet) -> bool {
        let is_next = packet.seq == self.client_next || self.client_sent == Some(packet.seq);
        is_next || !matches!(self.exchange, Exchange::Unprotected)
    }

    /// The furthest offset that the client can have acknowledged if only this server sent to it.
    fn view_limit(&self) -> u64 {
        match &self.exchange {
            Exchange::Asked(_) | Exchange::Saving(_) => self.mapping.view_base(),
            // A resumed response has sent nothing here; what the client acknowledged came from others.
            Exchange::Resuming(_) => u64::MAX,
            _ => self.mapping.view(self.server_next),
        }
    }

    /// Writes a packet of the client in the terms of the server's connection.
    fn translate(&mut self, packet: &mut Packet, view: u64, context: &Context<'_>) {
        packet.source = self.near_end(context.config);
        packet.window = self.shifted(packet.window);
        if packet.has(Flags::ACK) {
            packet.ack = self.server_ack(view);
        }
        let (first, near) = (self.view_first, self.acked);
        let edge = |seq: Seq| {
            let offset = seq.offset(first, near)?;
            Some(self.server_first.plus(self.mapping.acknowledged(offset).min(self.server_next)))
        };
        let block = |(first, after): (Seq, Seq)| Some((edge(first)?, edge(after)?));
        let blocks = packet.options.sacks.iter().copied().filter_map(block);
        packet.options.sacks = blocks.filter(|(first, after)| after.is_after(*first)).collect();
        if let Some(stamps) = &mut packet.options.timestamps {
            // A reset's echo says nothing to anybody, and may be a stranger's: it moves no clock.
            if context.config.rules.translate_stamps && !packet.flags.has(Flags::RST) {
                stamps.echo = self.clock.inbound(stamps.echo);
                if let Some(newest) = self.clock.newest().filter(|_| self.mapping.is_ahead(view)) {
                    // The client's echo may be as old as the connection, and is not for what this acknowledges.
                    stamps.echo = newest;
                }
            }
        }
    }

    /// Reads the request, and leaves in the packet only what the server is to receive.
    fn take_payload(&mut self, packet: &mut Packet, context: &mut Context<'_>) {
        match &mut self.exchange {
            Exchange::Unprotected => {}
            Exchange::Idle(_) => self.take_request(packet, context),
            Exchange::Asked(Asked { end, .. }) if end.is_after(self.server_acked) => {
                let end = *end;
                cut_off(packet, end);
            }
            Exchange::Asked(Asked { end, .. }) | Exchange::Answering(Answering { end, .. }) => {
                let end = *end;
                strip(packet, end);
            }
            Exchange::Saving(saving) => {
                strip(packet, saving.asked.end);
                self.save_again(context);
            }
            Exchange::Resuming(resuming) => strip(packet, resuming.download.end),
            Exchange::Closing => {
                let end = self.client_next;
                if !packet.payload.is_empty() {
                    let last = packet.payload_end().plus(u64::from(packet.has(Flags::FIN)));
                    strip(packet, end);
                    if !last.is_after(self.server_acked) {
                        // It repeats all that it said, since no acknowledgment arrived; the server's TCP sees nothing
                        // of that and does not answer.
                        self.acknowledge_client(self.server_acked, context);
                    }
                }
            }
        }
    }

    fn take_request(&mut self, packet: &mut Packet, context: &mut Context<'_>) {
        let Exchange::Idle(idle) = &mut self.exchange else { return };
        let start = idle.start;
        if packet.payload.is_empty() {
            return;
        }
        if !packet.payload_end().is_after(start) {
            // The exchange before is complete, but the client has not heard that its request arrived.
            strip(packet, start);
            return self.acknowledge_client(start, context);
        }
        let next = start.plus(idle.bytes.len() as u64);
        let Ok(known) = usize::try_from(next.since(packet.seq)) else {
            // A segment before this one is missing; the client sends both again.
            return strip(packet, next);
        };
        let fresh = packet.payload.get(known..).unwrap_or_default();
        idle.bytes.extend_from_slice(fresh);
        // A client that repeats an old request together with a new one: the server knows the old one.
        let old = usize::try_from(start.since(packet.seq)).unwrap_or(0);
        packet.payload.drain(..old);
        packet.seq = packet.seq.plus(old as u64);
        match http::request(&idle.bytes, REQUEST_BYTES_MAX) {
            Head::Partial => self.hold_floor(start, context),
            Head::Other => self.unprotect(context),
            Head::Complete(request) => {
                let end = start.plus(request.head.len() as u64);
                cut_off(packet, end);
                let stamps_only = !context.config.mode.stores();
                if stamps_only && !(request.close && self.stamped && self.derived) {
                    return self.unprotect(context);
                }
                self.hold_floor(start, context);
                self.exchange = Exchange::Asked(Asked { request, start, end, head: Vec::new() });
            }
        }
    }

    pub(super) fn hold_floor(&mut self, start: Seq, context: &Context<'_>) {
        if context.config.rules.hold_request_ack {
            self.floor = Some(start);
        }
    }

    /// From now on this connection is passed through, as if there were no gateway.
    pub(super) fn unprotect(&mut self, context: &mut Context<'_>) {
        context.out.counters.unprotected += 1;
        self.floor = None;
        self.clock.mark(Mark::Unprotected);
        self.exchange = Exchange::Unprotected;
        self.release_held(context);
    }

    /// Ends the exchange if the client has all of its response, and then acknowledges the request.
    fn advance(&mut self, context: &mut Context<'_>) {
        let Exchange::Answering(answering) = &self.exchange else { return };
        if answering.body_end.is_none()
            && self.acked.saturating_sub(self.mapping.view_base()) > BODY_BYTES_MAX
        {
            // Further on, a recovering server could not tell the client's place.
            self.delete_record(context);
            return self.unprotect(context);
        }
        let done = if answering.close {
            self.is_fin_acknowledged()
        } else {
            answering.body_end.is_some_and(|end| self.acked >= end)
        };
        if !done {
            return;
        }
        let (end, body_end, close) = (answering.end, answering.body_end, answering.close);
        self.floor = None;
        self.acknowledge_client(end, context);
        if close {
            self.exchange = Exchange::Closing;
        } else {
            self.mapping.begin(self.mapping.acknowledged(body_end.unwrap_or(self.acked)));
            self.exchange = Exchange::idle(end);
        }
    }
}

/// Leaves of a packet what lies before `end`. The client sends a pipelined request after it again, when the first one
/// is answered.
fn cut_off(packet: &mut Packet, end: Seq) {
    let extra = usize::try_from(packet.payload_end().since(end)).unwrap_or(0);
    if extra > 0 {
        packet.payload.truncate(packet.payload.len().saturating_sub(extra));
        packet.flags = packet.flags.without(Flags::FIN);
    }
}

/// Leaves of a packet what lies at `end`: an acknowledgment, and a FIN that stands exactly there.
fn strip(packet: &mut Packet, end: Seq) {
    if packet.payload_end() != end {
        packet.flags = packet.flags.without(Flags::FIN);
    }
    packet.flags = packet.flags.without(Flags::PSH);
    packet.payload = Vec::new();
    packet.seq = end;
}
