//! What a request and its response have reached: one struct a state, with only what that state needs.

use super::{Connection, Context};
use crate::http::{self, Body, ChunkScanner, Head, Request, Response};
use crate::limits::{BODY_BYTES_MAX, RECOVERY_US_MAX, RESPONSE_HEAD_BYTES_MAX, SAVES_AGAIN_MAX};
use crate::mapping::Splice;
use crate::output::Now;
use crate::record::Record;
use crate::seq::Seq;
use crate::stamp::{Mark, UNIT_BYTES, UNITS};
use crate::store::{StoreOp, StoreOutcome, Ticket};

/// The client has not asked, or not all of its request has arrived.
#[derive(Debug)]
pub(super) struct Idle {
    pub start: Seq,
    pub bytes: Vec<u8>,
}

/// The server has the request; its response head is being read.
#[derive(Debug)]
pub(super) struct Asked {
    pub request: Request,
    pub start: Seq,
    pub end: Seq,
    pub head: Vec<u8>,
}

/// The response is held until its record is saved.
#[derive(Debug)]
pub(super) struct Saving {
    pub asked: Asked,
    pub response: Response,
    pub ticket: Ticket,
    pub op: StoreOp,
    pub since: Now,
    /// How often the operation has failed.
    pub failed: u32,
}

/// An exchange whose response the client has in part.
#[derive(Debug)]
pub(super) struct Download {
    pub request: Vec<u8>,
    pub start: Seq,
    pub end: Seq,
    /// The head that the client was sent, if it is known; in timestamps only its length is.
    pub saved: Option<Response>,
    pub head_length: u64,
    /// Offset in the client's stream to which it had acknowledged.
    pub view: u64,
    pub close: bool,
}

/// The application was asked for the rest of an object; the head of its response is being read.
#[derive(Debug)]
pub(super) struct Resuming {
    pub download: Download,
    /// First byte of the object that was asked for.
    pub wanted: u64,
    pub head: Vec<u8>,
}

/// The response flows.
#[derive(Debug)]
pub(super) struct Answering {
    pub end: Seq,
    /// Offset in the client's stream after the body, if it is known.
    pub body_end: Option<u64>,
    pub close: bool,
    /// A chunked body: its reader, the server's offset it has read to, and where the body starts for the client.
    pub chunks: Option<(ChunkScanner, u64, u64)>,
}

#[derive(Debug)]
pub(super) enum Exchange {
    Idle(Idle),
    Asked(Asked),
    Saving(Box<Saving>),
    Resuming(Box<Resuming>),
    Answering(Answering),
    /// The client has the response and the server's FIN.
    Closing,
    /// Passed through.
    Unprotected,
}

impl Exchange {
    pub fn idle(start: Seq) -> Self {
        Self::Idle(Idle { start, bytes: Vec::new() })
    }
}

impl Connection {
    /// The response head is complete: its state goes to timestamps or to the store before it flows.
    pub(super) fn on_response_head(&mut self, asked: Asked, response: Response, context: &mut Context<'_>) {
        let protectable = match response.body {
            Body::Length(length) => length <= BODY_BYTES_MAX,
            // Where a chunk ends is up to the server, and so is what a body without a length holds.
            Body::Chunked | Body::UntilClose => context.config.streams,
        };
        if !protectable {
            return self.unprotect(context);
        }
        if let Some((units, object)) = self.stampable(&asked, &response, context) {
            let padded = http::padded(&response.head, usize::from(units) * UNIT_BYTES)
                .expect("as many units as the head needs");
            context.out.counters.stamped += 1;
            self.clock.mark(Mark::Object { units, object });
            return self.answer(&asked, &response, padded, context);
        }
        if !context.config.mode.stores() {
            return self.unprotect(context);
        }
        self.clock.mark(Mark::InStore);
        let record = Record {
            path: self.path,
            request_seq: asked.start,
            response_seq: self.view_first.plus(self.mapping.view_base()),
            request: asked.request.head.clone(),
            head: response.head.clone(),
        };
        let op = StoreOp::Put { key: self.key, exchange: asked.start, record: record.encode() };
        let ticket = context.out.store(op.clone());
        if context.config.rules.block_first_response {
            let since = context.now;
            self.exchange =
                Exchange::Saving(Box::new(Saving { asked, response, ticket, op, since, failed: 0 }));
        } else {
            let head = response.head.clone();
            self.answer(&asked, &response, head, context);
        }
    }

    /// Units of the head and index of the object, if timestamps can hold this exchange.
    fn stampable(&self, asked: &Asked, response: &Response, context: &Context<'_>) -> Option<(u8, u16)> {
        let first = self.derived && self.mapping.base() == 0;
        let plain =
            asked.request.close && !asked.request.selects && !response.varies && response.status == 200;
        let bounded = matches!(response.body, Body::Length(_));
        if !(context.config.mode.stamps() && self.stamped && first && plain && bounded) {
            return None;
        }
        let needed = response.head.len().div_ceil(UNIT_BYTES);
        let units = UNITS.into_iter().find(|units| *units >= needed)?;
        let object = context.config.objects.index(&asked.request.object)?;
        let fits = units * UNIT_BYTES <= self.segment_payload_max();
        fits.then(|| (u8::try_from(units).expect("of UNITS"), object))
    }

    /// The client waits for a response whose record is not saved: after a while the operation is issued again, as its
    /// outcome may have been lost. If the first one arrived, the record that exists is adopted.
    pub(super) fn save_again(&mut self, context: &mut Context<'_>) {
        let Exchange::Saving(saving) = &mut self.exchange else { return };
        if context.now.0.saturating_sub(saving.since.0) > RECOVERY_US_MAX {
            saving.ticket = context.out.store(saving.op.clone());
            saving.since = context.now;
        }
    }

    pub(super) fn on_saved(&mut self, saving: Saving, outcome: StoreOutcome, context: &mut Context<'_>) {
        if outcome == StoreOutcome::Failed {
            return self.on_save_failed(saving, context);
        }
        let Saving { asked, response, .. } = saving;
        let head = match outcome {
            StoreOutcome::Exists(bytes) if context.config.rules.adopt_record => {
                let expected = self.view_first.plus(self.mapping.view_base());
                let record = Record::decode(&bytes).ok().filter(|record| record.response_seq == expected);
                // The head of one response before the body of another would be neither.
                let same = |record: &Record| match http::response(&record.head, RESPONSE_HEAD_BYTES_MAX) {
                    Head::Complete(first) => {
                        http::agree(&first, &response) || !context.config.rules.compare_heads
                    }
                    Head::Partial | Head::Other => false,
                };
                let Some(record) = record.filter(same) else {
                    context.out.counters.lost += 1;
                    return self.break_off(context);
                };
                context.out.counters.adopted += 1;
                record.head
            }
            _ => {
                context.out.counters.saved += 1;
                response.head.clone()
            }
        };
        self.delete_record(context);
        self.saved = Some(asked.start);
        self.answer(&asked, &response, head, context);
    }

    /// Another server may have stored a record of the same request and answer it, if this one was suspected wrongly:
    /// two responses without a record in common would be mixed. So the operation is repeated, and a server that has
    /// recovered the connection, and so could read the store, says nothing without it. One that has had the connection
    /// from its start lets its response flow unprotected: the store may be gone for everybody.
    fn on_save_failed(&mut self, mut saving: Saving, context: &mut Context<'_>) {
        if saving.failed < SAVES_AGAIN_MAX {
            saving.failed += 1;
            saving.ticket = context.out.store(saving.op.clone());
            saving.since = context.now;
            self.exchange = Exchange::Saving(Box::new(saving));
        } else if self.local.is_some() {
            context.out.counters.lost += 1;
            self.break_off(context);
        } else {
            self.unprotect(context);
        }
    }

    /// Lets the response flow, with `head` in place of the head that the server sent.
    fn answer(&mut self, asked: &Asked, response: &Response, head: Vec<u8>, context: &mut Context<'_>) {
        let at = self.mapping.base() + response.head.len() as u64;
        let view_at = self.mapping.view_base() + head.len() as u64;
        self.mapping.splice(Splice { at, view_at, prefix: head });
        self.exchange = Exchange::Answering(Answering {
            end: asked.end,
            body_end: match response.body {
                Body::Length(length) => Some(view_at + length),
                Body::Chunked | Body::UntilClose => None,
            },
            close: asked.request.close || response.close,
            chunks: (response.body == Body::Chunked).then(|| (ChunkScanner::default(), at, view_at)),
        });
        self.release_held(context);
    }
}
