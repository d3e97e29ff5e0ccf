//! What a sketcher and a replica say to each other on a link. Between replicas a frame is a message of
//! `ensue-byzantine`.

use ensue_byzantine::Malformed;
use ensue_byzantine::block::{Request, RequestNumber};
use ensue_byzantine::limits::{ANSWER_BYTES_MAX, REQUEST_BYTES_MAX};
use ensue_byzantine::message::MESSAGE_BYTES_MAX;

/// Bytes of a frame to a replica from a sketcher, from a replica, and to a sketcher.
pub(super) const TO_REPLICA_MAX: usize = REQUEST_BYTES_MAX + 256;
pub(super) const BETWEEN_REPLICAS_MAX: usize = MESSAGE_BYTES_MAX;
pub(super) const TO_SKETCHER_MAX: usize = ANSWER_BYTES_MAX + 256;

const FAST: u8 = 1;
const CALL: u8 = 2;

/// Which fast read: a session and its attempt, or another number that the sketcher knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) session: u32,
    pub(super) attempt: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToReplica {
    /// Execute this now, here.
    Fast { ticket: Ticket, request: Vec<u8> },
    /// Execute this in the order.
    Call(Request),
}

/// What came of a request of the order. Its code is the first byte of a response in the machine of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Response {
    TooLong,
    Whole(Vec<u8>),
    /// The application gave none.
    Absent,
}

impl Response {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Response::TooLong => vec![0],
            Response::Whole(response) => std::iter::once(1).chain(response.iter().copied()).collect(),
            Response::Absent => vec![2],
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Response, Malformed> {
        match bytes.split_first().ok_or(ENDS_EARLY)? {
            (0, []) => Ok(Response::TooLong),
            (1, response) => Ok(Response::Whole(response.to_vec())),
            (2, []) => Ok(Response::Absent),
            _ => Err(Malformed("an unknown kind of response")),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToSketcher {
    Fast { ticket: Ticket, response: Vec<u8> },
    Answer { session: u32, number: RequestNumber, sequence: u64, response: Response },
}

impl ToReplica {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            ToReplica::Fast { ticket, request } => {
                out.push(FAST);
                push_ticket(&mut out, *ticket);
                out.extend_from_slice(request);
            }
            ToReplica::Call(request) => {
                out.push(CALL);
                request.encode(&mut out);
            }
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<ToReplica, Malformed> {
        let (kind, rest) = bytes.split_first().ok_or(Malformed("an empty frame"))?;
        match *kind {
            FAST => {
                let (ticket, request) = take_ticket(rest)?;
                Ok(ToReplica::Fast { ticket, request: request.to_vec() })
            }
            CALL => Request::decode(rest).map(ToReplica::Call),
            _ => Err(Malformed("an unknown kind of frame")),
        }
    }
}

impl ToSketcher {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            ToSketcher::Fast { ticket, response } => {
                out.push(FAST);
                push_ticket(&mut out, *ticket);
                out.extend_from_slice(response);
            }
            ToSketcher::Answer { session, number, sequence, response } => {
                out.push(CALL);
                out.extend_from_slice(&session.to_le_bytes());
                for number in [number.incarnation, number.call, *sequence] {
                    out.extend_from_slice(&number.to_le_bytes());
                }
                out.extend_from_slice(&response.encode());
            }
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<ToSketcher, Malformed> {
        let (kind, rest) = bytes.split_first().ok_or(Malformed("an empty frame"))?;
        match *kind {
            FAST => {
                let (ticket, response) = take_ticket(rest)?;
                Ok(ToSketcher::Fast { ticket, response: response.to_vec() })
            }
            CALL => {
                let (session, rest) = take::<4>(rest)?;
                let (incarnation, rest) = take::<8>(rest)?;
                let (call, rest) = take::<8>(rest)?;
                let (sequence, rest) = take::<8>(rest)?;
                Ok(ToSketcher::Answer {
                    session: u32::from_le_bytes(session),
                    number: RequestNumber {
                        incarnation: u64::from_le_bytes(incarnation),
                        call: u64::from_le_bytes(call),
                    },
                    sequence: u64::from_le_bytes(sequence),
                    response: Response::decode(rest)?,
                })
            }
            _ => Err(Malformed("an unknown kind of frame")),
        }
    }
}

const ENDS_EARLY: Malformed = Malformed("it ends early");

fn push_ticket(out: &mut Vec<u8>, ticket: Ticket) {
    out.extend_from_slice(&ticket.session.to_le_bytes());
    out.extend_from_slice(&ticket.attempt.to_le_bytes());
}

fn take_ticket(bytes: &[u8]) -> Result<(Ticket, &[u8]), Malformed> {
    let (session, rest) = take::<4>(bytes)?;
    let (attempt, rest) = take::<8>(rest)?;
    Ok((Ticket { session: u32::from_le_bytes(session), attempt: u64::from_le_bytes(attempt) }, rest))
}

fn take<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), Malformed> {
    let (taken, rest) = bytes.split_first_chunk::<N>().ok_or(ENDS_EARLY)?;
    Ok((*taken, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        let ticket = Ticket { session: 3, attempt: 9 };
        let to = ToReplica::Fast { ticket, request: b"GET".to_vec() };
        assert_eq!(ToReplica::decode(&to.encode()), Ok(to));
        let number = RequestNumber { incarnation: 5, call: 6 };
        for response in [
            Response::Whole(b"+OK".to_vec()),
            Response::Whole(Vec::new()),
            Response::TooLong,
            Response::Absent,
        ] {
            let from = ToSketcher::Answer { session: 1, number, sequence: 7, response };
            assert_eq!(ToSketcher::decode(&from.encode()), Ok(from));
        }
        let from = ToSketcher::Fast { ticket, response: b"$-1".to_vec() };
        assert_eq!(ToSketcher::decode(&from.encode()), Ok(from));
        for bytes in [&b""[..], b"\x01abc", b"\x02abc", b"\x09"] {
            assert!(ToReplica::decode(bytes).is_err() && ToSketcher::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
