//! Packets of the local TCP stack: held, discarded, or written as the client expects them.

use super::exchange::Exchange;
use super::{Connection, Context, Stage};
use crate::http::{self, Head};
use crate::limits::{HELD_PACKETS_MAX, RESPONSE_HEAD_BYTES_MAX};
use crate::mapping::Mapped;
use crate::output::Side;
use crate::packet::{Flags, Packet, patched};

/// Bytes that the timestamp option takes in a segment, with its padding.
const STAMP_BYTES: u16 = 12;

impl Connection {
    pub fn on_server(&mut self, bytes: &[u8], packet: Packet, context: &mut Context<'_>) {
        match self.stage {
            Stage::Opening if packet.has(Flags::SYN) => self.on_syn_ack(bytes, &packet, context),
            Stage::Connecting(_) if packet.has(Flags::SYN) => self.on_local_syn_ack(&packet, context),
            Stage::Connecting(_) | Stage::Opening if packet.has(Flags::RST) => {
                self.on_failure(bytes, context)
            }
            // The server's TCP has an older connection between these ends, and says so in its challenge ACK. As a
            // client's TCP does (RFC 9293, 3.5.2), a RST ends that one; the client's next SYN opens the new one.
            Stage::Opening if !self.answered => {
                self.send_server(packet.ack, Flags::RST, Vec::new(), 0, context);
            }
            Stage::Opening | Stage::Open => self.on_server_open(bytes, packet, context),
            Stage::LookingUp { .. } | Stage::Connecting(_) | Stage::Broken | Stage::Over => {}
        }
    }

    fn on_syn_ack(&mut self, bytes: &[u8], packet: &Packet, context: &mut Context<'_>) {
        if let Some(rival) = self.rival.take_if(|rival| rival.seq.plus(1) == packet.ack) {
            *self = Self::of_syn(self.key, &rival, context.now, context.config);
        }
        self.answered = true;
        self.server_first = packet.seq.plus(1);
        self.server_acked = packet.ack;
        self.server_window = packet.window;
        self.stamped &= packet.options.timestamps.is_some();
        if !self.derived {
            self.view_first = self.server_first;
        }
        let mut shown = packet.clone();
        shown.seq = self.view_first.minus(1);
        if let Some(stamps) = &mut shown.options.timestamps {
            stamps.value = self.clock.outbound(stamps.value);
        }
        context.out.send(Side::Client, patched(bytes, packet, &shown));
    }

    /// The application, or its machine's TCP stack, gave the connection up: the client is not to notice.
    fn on_failure(&mut self, bytes: &[u8], context: &mut Context<'_>) {
        if context.config.rules.hide_resets {
            context.out.application_failed();
            self.break_off(context);
        } else {
            context.out.send(Side::Client, bytes.to_vec());
        }
    }

    pub(super) fn break_off(&mut self, context: &mut Context<'_>) {
        // What the server's TCP still has to send would answer the next connection between these ends.
        self.reset_server(context);
        self.active = context.now;
        self.held.clear();
        self.stage = Stage::Broken;
    }

    fn on_server_open(&mut self, bytes: &[u8], packet: Packet, context: &mut Context<'_>) {
        if packet.has(Flags::RST) {
            let answered = matches!(self.exchange, Exchange::Closing | Exchange::Unprotected);
            if !answered {
                return self.on_failure(bytes, context);
            }
            self.was_reset = true;
            // A client believes a reset only at the number that it waits for. A TCP that knows no connection takes that
            // from the client's own packet; what says nothing stands after all that was sent.
            let offset = packet.seq.offset(self.server_first, self.server_next);
            let offset = offset.filter(|offset| *offset <= self.server_next).unwrap_or(self.server_next);
            return self.pass(bytes, &packet, offset, context);
        }
        let Some(offset) = packet.seq.offset(self.server_first, self.server_next) else { return };
        let end = offset + packet.payload.len() as u64;
        self.server_window = packet.window;
        if packet.ack.is_after(self.server_acked) {
            self.server_acked = packet.ack;
        }
        self.server_next = self.server_next.max(end + u64::from(packet.has(Flags::FIN)));
        match &mut self.exchange {
            Exchange::Asked(asked) => {
                let read = self.mapping.base() + asked.head.len() as u64;
                take_head(&mut asked.head, read, offset, &packet.payload);
                let unfinished = packet.has(Flags::FIN)
                    && matches!(http::response(&asked.head, RESPONSE_HEAD_BYTES_MAX), Head::Partial);
                if unfinished && context.config.rules.hide_resets {
                    return self.on_failure(bytes, context);
                }
                self.hold(bytes, packet);
                self.read_head(context);
            }
            Exchange::Saving(_) => self.hold(bytes, packet),
            Exchange::Idle(idle)
                if (!packet.payload.is_empty() && end > self.mapping.base())
                    || (packet.has(Flags::FIN) && !idle.bytes.is_empty()) =>
            {
                // An answer to what is no whole request for this gateway: it does not understand this connection.
                self.unprotect(context);
                self.release(bytes, &packet, context);
            }
            Exchange::Idle(_)
                if packet.has(Flags::FIN) && !self.client_closed && context.config.rules.hide_resets =>
            {
                // The application is tired of waiting, or died. Should the client ask again, it is recovered.
                self.reset_server(context);
                self.stage = Stage::Over;
            }
            Exchange::Resuming(resuming) => {
                let read = resuming.head.len() as u64;
                take_head(&mut resuming.head, read, offset, &packet.payload);
                self.hold(bytes, packet);
                self.read_resumed_head(context);
            }
            _ => self.release(bytes, &packet, context),
        }
    }

    /// Whether a FIN at this offset of the server's stream is before the end of the response.
    fn is_early(&self, end: u64) -> bool {
        let Exchange::Answering(answering) = &self.exchange else { return false };
        !self.mapping.is_discarded(end)
            && answering.body_end.map_or(answering.chunks.is_some(), |body| self.mapping.view(end) < body)
    }

    /// Whether the client expects to ask again after this response, so that a FIN right after it is not for it to see.
    fn keeps_open(&self) -> bool {
        matches!(&self.exchange, Exchange::Answering(answering) if !answering.close) && !self.client_closed
    }

    fn hold(&mut self, bytes: &[u8], packet: Packet) {
        let empty = packet.payload.is_empty() && !packet.has(Flags::FIN);
        if !empty && self.held.len() < HELD_PACKETS_MAX {
            self.held.push_back((bytes.to_vec(), packet));
        }
    }

    pub(super) fn release_held(&mut self, context: &mut Context<'_>) {
        for (bytes, packet) in std::mem::take(&mut self.held) {
            if matches!(self.stage, Stage::Open) {
                self.release(&bytes, &packet, context);
            }
        }
    }

    fn read_head(&mut self, context: &mut Context<'_>) {
        let Exchange::Asked(asked) = &self.exchange else { return };
        match http::response(&asked.head, RESPONSE_HEAD_BYTES_MAX) {
            Head::Partial => {}
            Head::Other => self.unprotect(context),
            Head::Complete(response) => {
                let Exchange::Asked(asked) = std::mem::replace(&mut self.exchange, Exchange::Unprotected)
                else {
                    return;
                };
                self.on_response_head(asked, response, context);
            }
        }
    }

    /// Sends the client what a packet of the server has for it.
    fn release(&mut self, bytes: &[u8], packet: &Packet, context: &mut Context<'_>) {
        let Some(offset) = packet.seq.offset(self.server_first, self.server_next) else { return };
        let length = packet.payload.len() as u64;
        let fin = packet.has(Flags::FIN);
        if length == 0 && !fin {
            // The acknowledgment of the request. A probe stands before the next byte, and asks for an answer.
            if self.floor.is_none() || offset < self.server_next {
                self.pass(bytes, packet, offset, context);
            }
            return;
        }
        if self.is_past_gap(offset) {
            return;
        }
        if !self.read_chunks(offset, &packet.payload) {
            self.delete_record(context);
            self.unprotect(context);
        }
        if self.is_past_body() {
            return self.give_up(context);
        }
        if fin {
            if context.config.rules.hide_resets && self.is_early(offset + length) {
                return self.on_failure(bytes, context);
            }
            self.server_fin = Some(offset + length);
        }
        let mut shown = packet.clone();
        if fin && context.config.rules.hide_resets && self.keeps_open() {
            shown.flags = shown.flags.without(Flags::FIN);
            if length == 0 {
                return;
            }
        }
        match self.mapping.segment(offset, length) {
            Mapped::Discarded(_) if fin => self.end_discarded(context),
            Mapped::Discarded(_) => {
                let seq = self.client_next;
                let echo = packet.options.timestamps.map_or(0, |stamps| stamps.value);
                self.send_server(seq, Flags::ACK, Vec::new(), echo, context);
            }
            Mapped::At(view) => self.send_client(bytes, packet, shown, view, context),
            Mapped::Joined { view, prefix, skip } => {
                let known = usize::try_from(self.acked.saturating_sub(view)).unwrap_or(prefix.len());
                let known = known.min(prefix.len());
                shown.payload = prefix[known..].to_vec();
                shown.payload.extend_from_slice(&packet.payload[skip..]);
                self.send_client(bytes, packet, shown, view + known as u64, context);
            }
        }
    }

    fn pass(&mut self, bytes: &[u8], packet: &Packet, offset: u64, context: &mut Context<'_>) {
        let view = self.mapping.view(offset);
        self.send_client(bytes, packet, packet.clone(), view, context);
    }

    /// Whether a packet lies after one that was dropped because too many were held. The end of a chunked body is found
    /// by reading it in order, so such a packet is dropped too, and the server sends both again.
    fn is_past_gap(&self, offset: u64) -> bool {
        let Exchange::Answering(answering) = &self.exchange else { return false };
        answering.chunks.as_ref().is_some_and(|(_, read, _)| offset > *read)
    }

    /// Whether the client has bytes after the body of a response on a connection that goes on: it was recovered without
    /// its last record, which was lost.
    fn is_past_body(&self) -> bool {
        let Exchange::Answering(answering) = &self.exchange else { return false };
        !answering.close && answering.body_end.is_some_and(|end| self.acked > end)
    }

    /// Reads on in a chunked body. Answers whether it is one, as far as it was read.
    fn read_chunks(&mut self, offset: u64, payload: &[u8]) -> bool {
        let Exchange::Answering(answering) = &mut self.exchange else { return true };
        let Some((scanner, read, start)) = &mut answering.chunks else { return true };
        let known = read.checked_sub(offset).and_then(|known| usize::try_from(known).ok());
        if let Some(fresh) = known.and_then(|known| payload.get(known..)) {
            *read += fresh.len() as u64;
            if let Some(length) = scanner.read(fresh) {
                answering.body_end = Some(*start + length);
            }
        }
        !scanner.is_bad()
    }

    /// Sends a segment to the client at an offset of its stream, in as many packets as it needs.
    fn send_client(
        &mut self,
        bytes: &[u8],
        original: &Packet,
        mut shown: Packet,
        view: u64,
        context: &mut Context<'_>,
    ) {
        let rules = context.config.rules;
        let first = if rules.splice_isn { self.view_first } else { self.server_first };
        shown.destination = self.key.client;
        shown.window = self.shown_window(shown.window);
        if let Some(floor) = self.floor.filter(|floor| shown.ack.is_after(*floor)) {
            shown.ack = floor;
        }
        if matches!(self.stage, Stage::Opening) {
            // Its SYN may be a stranger's, and a client with a connection of another server keeps what it is shown.
            shown.options.timestamps = None;
        }
        if let Some(stamps) = &mut shown.options.timestamps {
            if rules.translate_stamps {
                stamps.value = self.clock.outbound(stamps.value);
            }
        }
        shown.seq = first.plus(view);
        if shown.payload.len() <= self.segment_payload_max() || shown.payload == original.payload {
            return context.out.send(Side::Client, patched(bytes, original, &shown));
        }
        let payload = std::mem::take(&mut shown.payload);
        let last = shown.flags;
        let mut rest = &payload[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(self.segment_payload_max()));
            let ends = Flags::FIN.with(Flags::PSH);
            shown.flags = if later.is_empty() { last } else { last.without(ends) };
            shown.payload = now.to_vec();
            context.out.send(Side::Client, shown.build());
            shown.seq = shown.seq.plus(now.len() as u64);
            rest = later;
        }
    }

    pub(super) fn segment_payload_max(&self) -> usize {
        let options = if self.stamped { STAMP_BYTES } else { 0 };
        usize::from(self.path.segment_size.saturating_sub(options).max(1))
    }
}

/// Appends what a segment at `offset` adds to a head that was read to `read`.
fn take_head(head: &mut Vec<u8>, read: u64, offset: u64, payload: &[u8]) {
    let known = read.checked_sub(offset).and_then(|known| usize::try_from(known).ok());
    if let Some(fresh) = known.and_then(|known| payload.get(known..)) {
        let room = RESPONSE_HEAD_BYTES_MAX.saturating_sub(head.len());
        head.extend_from_slice(&fresh[..fresh.len().min(room)]);
    }
}
