//! Steps of reading log batches from a file: take the next whole batch, or look for any later one.
//!
//! Shared by recovery, by the check and by readers of old entries. Each step works on what the window holds and says
//! which read it needs next.

use crate::disk::DiskOp;
use crate::layout::LayoutError;
use crate::layout::batch::{BATCH_HEADER_BYTES, BATCH_MAGIC, BatchHeader, Seal};
use crate::layout::u32_at;
use crate::log::Lsn;
use crate::window::Window;
use bytes::Bytes;

/// The outcome of a step.
#[derive(Clone, Debug)]
pub(crate) enum Step<T> {
    Read(DiskOp),
    Found(T),
    /// The file ends here.
    End,
    Invalid(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) header: BatchHeader,
    pub(crate) body: Bytes,
}

/// Takes the batch at the window's place, in the segment that begins at `first`.
pub(crate) fn next_batch(window: &mut Window, first: Lsn, seal: Seal) -> Step<Batch> {
    if window.left() == 0 {
        return Step::End;
    }
    if window.held().len() < BATCH_HEADER_BYTES {
        return match window.read() {
            Some(op) => Step::Read(op),
            None => Step::Invalid(format!("{} bytes are no batch header", window.left())),
        };
    }
    let lsn = Lsn(first.0 + window.offset());
    let header = match BatchHeader::decode(window.held(), seal, lsn) {
        Ok(header) => header,
        Err(error) => return Step::Invalid(error.to_string()),
    };
    let total = header.end().0 - lsn.0;
    if total > window.left() {
        return Step::Invalid(format!("a batch of {total} bytes, {} are left", window.left()));
    }
    if (window.held().len() as u64) < total {
        return Step::Read(window.read().expect("less is held than is left"));
    }
    let body_range = BATCH_HEADER_BYTES..total as usize;
    if seal.checksum(&window.held()[body_range]) != header.body_checksum {
        return Step::Invalid("checksum of the batch's records does not match".to_string());
    }
    window.skip(BATCH_HEADER_BYTES);
    Step::Found(Batch { header, body: window.take(header.body_bytes as usize) })
}

/// Looks for the header of a batch which says that the log was durable beyond a position. Headers are looked for at
/// every byte; the place that a header claims must be its own.
pub(crate) fn find_testimony(window: &mut Window, first: Lsn, seal: Seal, beyond: Lsn) -> Step<BatchHeader> {
    let held = window.held();
    let starts = (held.len() + 1).saturating_sub(BATCH_HEADER_BYTES);
    for start in (0..starts).filter(|&start| held[start..start + 4] == BATCH_MAGIC) {
        let lsn = Lsn(first.0 + window.offset() + start as u64);
        match BatchHeader::decode(&held[start..], seal, lsn) {
            Ok(header) if header.synced > beyond => return Step::Found(header),
            _ => {}
        }
    }
    window.skip(starts);
    window.read().map_or(Step::End, Step::Read)
}

/// The records of a batch, each with the log position of its end.
pub(crate) fn records(batch: &Batch) -> Result<Vec<(Lsn, Bytes)>, LayoutError> {
    let body = &batch.body;
    let begin = batch.header.lsn.0 + BATCH_HEADER_BYTES as u64;
    let mut found = Vec::with_capacity((batch.header.records as usize).min(body.len() / 4));
    let mut at = 0;
    while at < body.len() {
        let left = body.len() - at;
        let length = if left < 4 { u64::MAX } else { u64::from(u32_at(body, at)) + 4 };
        if length > left as u64 {
            return Err(LayoutError::TooShort { what: "record", at, needed: length, left });
        }
        let end = at + length as usize;
        found.push((Lsn(begin + end as u64), body.slice(at + 4..end)));
        at = end;
    }
    if found.len() != batch.header.records as usize {
        let value = found.len() as u64;
        return Err(LayoutError::Unknown { what: "number of records in the batch", at: 28, value });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensue_types::Incarnation;

    fn batch(records: u32, body: &'static [u8]) -> Batch {
        let (lsn, synced, body_bytes) = (Lsn(100), Lsn(0), body.len() as u32);
        let header =
            BatchHeader { incarnation: Incarnation(1), lsn, synced, body_bytes, records, body_checksum: 0 };
        Batch { header, body: Bytes::from_static(body) }
    }

    #[test]
    fn a_body_is_whole_records_and_nothing_else() {
        let begin = 100 + BATCH_HEADER_BYTES as u64;
        let found =
            records(&batch(2, b"\x01\0\0\0r\0\0\0\0")).expect("a record of one byte and an empty one");
        assert_eq!(found, [(Lsn(begin + 5), Bytes::from_static(b"r")), (Lsn(begin + 9), Bytes::new())]);
        for (number, body) in [(1, &b"\x01\0\0"[..]), (1, b"\x01\0\0\0"), (2, b"\x01\0\0\0r\0\0\0")] {
            let broken = records(&batch(number, body));
            assert!(matches!(broken, Err(LayoutError::TooShort { what: "record", .. })), "{broken:?}");
        }
        assert!(records(&batch(1, b"\0\0\0\0\0\0\0\0")).is_err(), "one more than the header says");
    }
}
