//! A connection that began on another server: its phase is found, and the local application continues it (III-B).

use super::exchange::{Answering, Download, Exchange, Resuming};
use super::{Connection, Context, Stage, syn_options};
use crate::http::{self, Body, ChunkScanner, Head, Response};
use crate::isn;
use crate::limits::{
    BODY_BYTES_MAX, REQUEST_BYTES_MAX, RESPONSE_HEAD_BYTES_MAX, SCALE_MAX, SEGMENT_SIZE_ASSUMED,
    WINDOW_ASSUMED,
};
use crate::mapping::{Mapping, Splice};
use crate::output::Side;
use crate::packet::{Flags, Packet};
use crate::record::{Path, Record};
use crate::seq::Seq;
use crate::stamp::{Clock, Mark, Shift, Stamp, Table, UNIT_BYTES};
use crate::store::{StoreOp, StoreOutcome, Ticket};

/// A connection to the local application is being opened.
#[derive(Debug)]
pub(super) struct Connecting {
    /// The packet that began the recovery.
    pub trigger: Packet,
    /// Sequence number of the first byte after SYN.
    first: Seq,
    /// In the download phase: the request for the rest of the object, and what is known of the exchange.
    resume: Option<(Vec<u8>, Resuming)>,
}

impl Connection {
    /// Begins to continue a connection of which this packet is the first one here.
    pub fn recover(&mut self, packet: Packet, context: &mut Context<'_>) {
        self.active = context.now;
        match self.take_up(&packet, context) {
            Some(stamp) => self.recover_stamped(packet, stamp.mark, context),
            None if context.config.mode.stores() => self.look_up(packet, context),
            None => self.give_up(context),
        }
    }

    /// Takes from the packet that begins a recovery what the connection is like. Answers what its timestamp holds.
    pub(super) fn take_up(&mut self, packet: &Packet, context: &Context<'_>) -> Option<Stamp> {
        self.observe_client(packet);
        self.client_closed = packet.has(Flags::FIN);
        let stamps = packet.options.timestamps;
        self.stamped = stamps.is_some();
        self.path = Path { segment_size: SEGMENT_SIZE_ASSUMED, window_scale: None, sack: true };
        if let Some(stamps) = stamps.filter(|_| context.config.mode.stamps()) {
            let stamp = Stamp::read(stamps.echo);
            self.path.window_scale = stamp.scale;
            self.clock = Clock::Table(Box::new(Table::after(stamps.echo, stamp)));
            return Some(stamp);
        }
        self.path.window_scale = assumed_scale(packet.window);
        self.clock = Clock::Shifted(stamps.map_or_else(Shift::default, |stamps| Shift::after(stamps.echo)));
        None
    }

    /// The client acknowledged what this server did not send: the connection went on elsewhere and comes back.
    pub(super) fn migrate(&mut self, packet: Packet, context: &mut Context<'_>) {
        context.out.counters.came_back += 1;
        self.restart(packet, context);
    }

    /// Ends the connection to the local application, and recovers the client's as if it were unknown.
    pub(super) fn restart(&mut self, packet: Packet, context: &mut Context<'_>) {
        self.reset_server(context);
        if let Some(port) = self.local.take() {
            context.out.release(port);
        }
        let fresh = Self::unknown(self.key, context.now);
        *self = fresh;
        if packet.has(Flags::ACK) {
            self.recover(packet, context);
        } else {
            self.stage = Stage::Over;
        }
    }

    fn look_up(&mut self, trigger: Packet, context: &mut Context<'_>) {
        let ticket = context.out.store(StoreOp::Get { key: self.key });
        self.stage = Stage::LookingUp { ticket, trigger };
    }

    /// The connection cannot be continued: its client will time out, as it would without a gateway.
    pub(super) fn give_up(&mut self, context: &mut Context<'_>) {
        context.out.counters.lost += 1;
        if self.local.is_some() {
            self.reset_server(context);
        }
        self.stage = Stage::Over;
    }

    fn recover_stamped(&mut self, packet: Packet, mark: Mark, context: &mut Context<'_>) {
        let config = context.config;
        let isn = self.derived_isn(packet.ack, context);
        match mark {
            // Another server may have answered what only the store holds, and the client not have echoed it.
            Mark::InStore | Mark::Setup if config.mode.stores() => self.look_up(packet, context),
            Mark::InStore | Mark::Unprotected => self.give_up(context),
            Mark::Setup => self.recover_first(packet, context),
            Mark::Object { units, object } => {
                self.view_first = isn.plus(1);
                let view = packet.ack.offset(self.view_first, 0).filter(|view| *view <= 2 * BODY_BYTES_MAX);
                let (Some(name), Some(view)) = (config.objects.name(object), view) else {
                    return self.give_up(context);
                };
                self.derived = true;
                let end = packet.payload_end();
                // Where the request began is not known of a packet without its bytes; one byte of it that stays
                // unacknowledged makes the client send again.
                let start = if packet.payload.is_empty() { end.minus(1) } else { packet.seq };
                let download = Download {
                    request: http::request_of_object(name),
                    start,
                    end,
                    saved: None,
                    head_length: u64::from(units) * UNIT_BYTES as u64,
                    view,
                    close: true,
                };
                self.resume(packet, download, context);
            }
        }
    }

    /// The initial sequence number that every server derives for a connection that this acknowledgment belongs to.
    fn derived_isn(&self, ack: Seq, context: &Context<'_>) -> Seq {
        let epoch = context.now.0 / context.config.epoch_us.max(1);
        let (client, service) = (self.key.client, self.key.service);
        isn::of_acknowledgment(&context.config.cluster_key, client, service, epoch, ack)
    }

    pub fn on_store(&mut self, ticket: Ticket, outcome: StoreOutcome, context: &mut Context<'_>) {
        match &self.stage {
            Stage::LookingUp { ticket: awaited, .. } if *awaited == ticket => {
                let Stage::LookingUp { trigger, .. } = std::mem::replace(&mut self.stage, Stage::Over) else {
                    return;
                };
                match outcome {
                    StoreOutcome::Found(records) => self.on_found(&records, trigger, context),
                    _ => self.give_up(context),
                }
            }
            Stage::Open if matches!(&self.exchange, Exchange::Saving(saving) if saving.ticket == ticket) => {
                if let Exchange::Saving(saving) = std::mem::replace(&mut self.exchange, Exchange::Unprotected)
                {
                    self.on_saved(*saving, outcome, context);
                }
            }
            _ => {}
        }
    }

    fn on_found(&mut self, records: &[Vec<u8>], packet: Packet, context: &mut Context<'_>) {
        // The packet may repeat the request before this one, or bring the next one. What is further away belongs to
        // an older connection between the same ends.
        let reach = |record: &Record| packet.payload_end().since(record.request_seq);
        let fits = |record: &Record| {
            let span = record.request.len() + packet.payload.len() + REQUEST_BYTES_MAX;
            usize::try_from(reach(record)).is_ok_and(|distance| (1..=span).contains(&distance))
                && packet.ack.since(record.response_seq) >= 0
        };
        let prove = context.config.rules.prove_setup;
        // A record that cannot be read may be this exchange's: without it, nobody knows what the client has.
        let Ok(records) = records.iter().map(|bytes| Record::decode(bytes)).collect::<Result<Vec<_>, _>>()
        else {
            return self.give_up(context);
        };
        match records.into_iter().filter(fits).min_by_key(reach) {
            Some(record) => self.recover_record(&record, packet, context),
            // Bytes that the client has out of order are a response that flowed: in timestamps, or its record was lost.
            None if prove && !packet.options.sacks.is_empty() && !self.is_stampable(&packet, context) => {
                self.give_up(context);
            }
            None => self.recover_first(packet, context),
        }
    }

    /// Whether a packet brings a request whose response timestamps can hold.
    fn is_stampable(&self, packet: &Packet, context: &Context<'_>) -> bool {
        match http::request(&packet.payload, REQUEST_BYTES_MAX) {
            Head::Complete(request) => {
                let is_named = context.config.objects.index(&request.object).is_some();
                matches!(self.clock, Clock::Table(_)) && request.close && !request.selects && is_named
            }
            Head::Partial | Head::Other => false,
        }
    }

    /// No record is known: the connection is at its start, or else its record was lost. The number that every server
    /// derives tells which.
    fn recover_first(&mut self, packet: Packet, context: &mut Context<'_>) {
        let is_first = packet.ack == self.derived_isn(packet.ack, context).plus(1);
        if !is_first && context.config.rules.prove_setup {
            return self.give_up(context);
        }
        self.derived = true;
        if !context.config.mode.stores() && !self.is_stampable(&packet, context) {
            // Timestamps cannot hold it, and two servers that answer it unprotected would not know of each other.
            return self.give_up(context);
        }
        self.recover_setup(packet, context);
    }

    fn recover_record(&mut self, record: &Record, mut packet: Packet, context: &mut Context<'_>) {
        let parsed = (
            http::request(&record.request, REQUEST_BYTES_MAX),
            http::response(&record.head, RESPONSE_HEAD_BYTES_MAX),
        );
        let (Head::Complete(request), Head::Complete(response)) = parsed else {
            return self.give_up(context);
        };
        self.path = record.path;
        self.view_first = record.response_seq;
        let view = u64::try_from(packet.ack.since(record.response_seq)).unwrap_or(0);
        let close = request.close || response.close;
        let head_length = record.head.len() as u64;
        if let Body::Length(length) = response.body {
            let end = head_length + length;
            if view >= end + u64::from(close) {
                let fresh = packet.payload_end().since(record.request_end());
                if !close && fresh > 0 && view > end && context.config.rules.prove_setup {
                    // The client has bytes of the next response, whose record was lost.
                    return self.give_up(context);
                }
                if !close && fresh > 0 {
                    // The client asks for the next object; what it repeats of the last request is answered.
                    let old = usize::try_from(record.request_end().since(packet.seq)).unwrap_or(0);
                    packet.payload.drain(..old.min(packet.payload.len()));
                    packet.seq = packet.seq.plus(old as u64);
                    self.saved = Some(record.request_seq);
                    return self.recover_setup(packet, context);
                }
                self.acked = view;
                self.client_next = record.request_end();
                return self.answer_complete(view == end, context);
            }
        }
        self.saved = Some(record.request_seq);
        self.clock.mark(Mark::InStore);
        let download = Download {
            request: record.request.clone(),
            start: record.request_seq,
            end: record.request_end(),
            saved: Some(response),
            head_length,
            view,
            close,
        };
        self.resume(packet, download, context);
    }

    /// The client has all of its response: its packet is acknowledged, and its FIN answered.
    fn answer_complete(&mut self, fin: bool, context: &mut Context<'_>) {
        context.out.counters.found_complete += 1;
        if self.local.is_some() {
            self.reset_server(context);
        }
        let seq = self.view_first.plus(self.acked);
        let ack = self.client_next.plus(u64::from(self.client_closed));
        let mut packet = Packet::acknowledgment(self.key.service, self.key.client, seq, ack);
        if fin && self.client_closed {
            packet.flags = Flags::FIN.with(Flags::ACK);
        }
        // Without a server there is no clock; the value after the echo is the newest that the client can know.
        self.clock.prime(0);
        if let Some(value) = self.stamped.then(|| self.clock.repeated()).flatten() {
            packet.options.timestamps = Some(crate::packet::Timestamps { value, echo: self.client_stamp });
        }
        context.out.send(Side::Client, packet.build());
        self.stage = Stage::Over;
    }

    /// The server's stream ended before the place that the client has reached.
    pub(super) fn end_discarded(&mut self, context: &mut Context<'_>) {
        self.answer_complete(false, context);
    }

    /// The client has nothing of its response, which the caller knows: a response in the middle of another would be
    /// wrong and look right. The request, which the client sends again, goes to the local application.
    fn recover_setup(&mut self, packet: Packet, context: &mut Context<'_>) {
        if matches!(http::request(&packet.payload, REQUEST_BYTES_MAX), Head::Other)
            || packet.payload.is_empty()
        {
            context.out.counters.ignored += 1;
            self.stage = Stage::Over;
            return;
        }
        context.out.counters.recovered_in_setup += 1;
        // The timestamp of SYN must not be later than that of the request, which may be older than the first packet.
        self.observe_client(&packet);
        self.view_first = packet.ack;
        self.acked = 0;
        self.client_next = packet.seq;
        self.exchange = Exchange::idle(packet.seq);
        self.connect(packet.seq, packet, None, context);
    }

    fn resume(&mut self, packet: Packet, download: Download, context: &mut Context<'_>) {
        let ranged = download
            .saved
            .as_ref()
            .is_none_or(|saved| saved.status == 200 && matches!(saved.body, Body::Length(_)));
        self.ask_for_rest(packet, download, ranged, context);
    }

    /// The application did not send all that is missing, though it sent a part: it is asked for the whole object, of
    /// which the client's part is discarded.
    fn ask_for_whole(&mut self, context: &mut Context<'_>) {
        let Exchange::Resuming(resuming) = std::mem::replace(&mut self.exchange, Exchange::Closing) else {
            return;
        };
        self.reset_server(context);
        if let Some(port) = self.local.take() {
            context.out.release(port);
        }
        self.held.clear();
        (self.server_next, self.server_fin) = (0, None);
        let packet = Packet::acknowledgment(self.key.client, self.key.service, self.client_next, Seq(0));
        let view = self.acked.max(resuming.download.view);
        self.ask_for_rest(packet, Download { view, ..resuming.download }, false, context);
    }

    fn ask_for_rest(&mut self, packet: Packet, download: Download, ranged: bool, context: &mut Context<'_>) {
        let reached = download.view.saturating_sub(download.head_length);
        // One byte too many is asked for, so that a client that lacks only FIN gets it from the server.
        let wanted = if ranged { reached.saturating_sub(1) } else { 0 };
        let request = http::range_request(&download.request, wanted, download.close);
        self.acked = download.view;
        self.unconfirmed = true;
        self.client_next = download.end;
        self.hold_floor(download.start, context);
        let first =
            download.end.minus(u32::try_from(request.len()).expect("at most REQUEST_BYTES_MAX and a range"));
        let resuming = Resuming { download, wanted, head: Vec::new() };
        self.connect(first, packet, Some((request, resuming)), context);
    }

    /// Opens a connection to the local application, whose client's bytes start at `first`: sequence numbers of the
    /// client need no translation then.
    fn connect(
        &mut self,
        first: Seq,
        trigger: Packet,
        resume: Option<(Vec<u8>, Resuming)>,
        context: &mut Context<'_>,
    ) {
        let Some(port) = context.out.allocate(self.key) else { return self.give_up(context) };
        self.local = Some(port);
        self.answered = false;
        self.mapping = Mapping::default();
        let near = self.near_end(context.config);
        let mut syn = Packet::acknowledgment(near, self.key.service, first.minus(1), Seq(0));
        syn.flags = Flags::SYN;
        syn.options = syn_options(self.path, self.stamped.then_some(self.client_stamp));
        context.out.send(Side::Server, syn.build());
        self.stage = Stage::Connecting(Box::new(Connecting { trigger, first, resume }));
    }

    pub(super) fn on_local_syn_ack(&mut self, packet: &Packet, context: &mut Context<'_>) {
        let Stage::Connecting(connecting) = std::mem::replace(&mut self.stage, Stage::Open) else { return };
        let Connecting { trigger, first, resume } = *connecting;
        self.answered = true;
        self.server_first = packet.seq.plus(1);
        self.server_acked = packet.ack;
        self.server_window = packet.window;
        if packet.options.window_scale.is_none() {
            self.window_shift = self.path.window_scale.unwrap_or(0);
            self.client_window = self.shifted(self.client_window);
        }
        self.stamped &= packet.options.timestamps.is_some();
        let stamp = packet.options.timestamps.map_or(0, |stamps| stamps.value);
        self.clock.prime(stamp);
        match resume {
            None => {
                let bytes = trigger.build();
                self.on_client_open(&bytes, trigger, context);
            }
            Some((request, resuming)) => {
                self.exchange = Exchange::Resuming(Box::new(resuming));
                self.send_server(first, Flags::ACK.with(Flags::PSH), request, stamp, context);
            }
        }
    }

    pub(super) fn read_resumed_head(&mut self, context: &mut Context<'_>) {
        let Exchange::Resuming(resuming) = &self.exchange else { return };
        let response = match http::response(&resuming.head, RESPONSE_HEAD_BYTES_MAX) {
            Head::Partial => return,
            Head::Other => return self.give_up(context),
            Head::Complete(response) => response,
        };
        if response.status == 416 && resuming.wanted > 0 {
            return self.answer_complete(false, context);
        }
        match plan(resuming, &response, context.config.rules.discard_head) {
            Some((splice, body_end)) => {
                context.out.counters.recovered_in_download += 1;
                let start = response.head.len() as u64;
                let chunked = response.body == Body::Chunked;
                let chunks = chunked.then(|| (ChunkScanner::default(), start, resuming.download.head_length));
                let answering = Answering {
                    end: resuming.download.end,
                    body_end,
                    close: resuming.download.close,
                    chunks,
                };
                self.mapping.splice(splice);
                self.exchange = Exchange::Answering(answering);
                self.release_held(context);
            }
            None if response.status == 206 && resuming.wanted > 0 => self.ask_for_whole(context),
            None => self.give_up(context),
        }
    }
}

/// The window scale of a client whose SYN another server saw, and that has received nothing: what makes its window no
/// larger than [`WINDOW_ASSUMED`].
fn assumed_scale(window: u16) -> Option<u8> {
    let scale = (0..=SCALE_MAX).rev().find(|scale| u32::from(window) << scale <= WINDOW_ASSUMED);
    scale.filter(|_| window > 0)
}

/// Where the resumed response joins the client's stream, and where the body ends there. `None` if it is not the rest
/// of the same object.
fn plan(resuming: &Resuming, response: &Response, discard_head: bool) -> Option<(Splice, Option<u64>)> {
    let reached = resuming.download.view.saturating_sub(resuming.download.head_length);
    let full = match response.body {
        Body::Length(length) => Some(length),
        Body::Chunked | Body::UntilClose => None,
    };
    let (skip, total) = match (response.status, response.range) {
        (206, Some(range)) => {
            // A server may send less than it was asked for.
            let whole = range.first == resuming.wanted && range.end == range.total;
            let total = Some(range.total).filter(|total| whole && full == total.checked_sub(range.first))?;
            (reached - resuming.wanted, Some(total))
        }
        _ => (reached, full),
    };
    let same = match &resuming.download.saved {
        Some(saved) if response.status == 206 => {
            let total = total.map_or(saved.body, Body::Length);
            http::agree(saved, &Response { status: saved.status, body: total, ..response.clone() })
        }
        Some(saved) => http::agree(saved, response),
        // Timestamps hold objects of a known length only.
        None => matches!(response.status, 200 | 206) && total.is_some(),
    };
    if !same || total.is_some_and(|total| total > BODY_BYTES_MAX) {
        return None;
    }
    let prefix = match &resuming.download.saved {
        _ if resuming.download.view >= resuming.download.head_length => Vec::new(),
        Some(saved) => saved.head.clone(),
        None => http::padded(&response.head, usize::try_from(resuming.download.head_length).ok()?)?,
    };
    let head = if discard_head { response.head.len() as u64 } else { 0 };
    let splice = Splice { at: head + skip, view_at: resuming.download.head_length + reached, prefix };
    Some((splice, total.map(|total| resuming.download.head_length + total)))
}

#[cfg(test)]
mod tests {
    use super::assumed_scale;

    #[test]
    fn first_windows_of_common_clients_tell_their_scale_or_less() {
        // Linux with scales of 10, 7 and none, Windows with 8, macOS with 6, and a window that is closed.
        let known =
            [(63, Some(10)), (502, Some(7)), (64_240, Some(0)), (1026, Some(5)), (2058, Some(4)), (0, None)];
        for (window, scale) in known {
            assert_eq!(assumed_scale(window), scale, "{window}");
        }
    }
}
