//! Rewrites fields of a packet in place, with incremental checksums (RFC 1624).
//!
//! A payload that was damaged on the way keeps a checksum that shows it, which summing anew would hide; and options
//! stay where the sender put them.

use super::checksum::updated;
use super::options::{is_sack, is_timestamps, walk};
use super::{IP_HEADER, Packet, TCP_HEADER};

struct Patch {
    bytes: Vec<u8>,
}

/// `original`, which parsed as `before`, with the fields of `after`. Built anew if more than addresses, ports, sequence
/// numbers, window, timestamps and SACK blocks differ.
#[must_use]
pub fn patched(original: &[u8], before: &Packet, after: &Packet) -> Vec<u8> {
    let same_shape = before.flags == after.flags
        && before.payload == after.payload
        && before.options.sacks.len() == after.options.sacks.len()
        && before.options.timestamps.is_some() == after.options.timestamps.is_some()
        && before.options.segment_size == after.options.segment_size
        && before.options.window_scale == after.options.window_scale;
    if !same_shape {
        return after.build();
    }
    let mut patch = Patch { bytes: original.to_vec() };
    patch.address(12, after.source.address.octets());
    patch.address(16, after.destination.address.octets());
    patch.segment(0, &after.source.port.to_be_bytes());
    patch.segment(2, &after.destination.port.to_be_bytes());
    patch.segment(4, &after.seq.0.to_be_bytes());
    patch.segment(8, &after.ack.0.to_be_bytes());
    patch.segment(14, &after.window.to_be_bytes());
    for (at, bytes) in option_fields(original, after) {
        patch.segment(at, &bytes);
    }
    patch.bytes
}

/// Where in the segment the bodies of timestamps and SACK stand, and their new bytes.
fn option_fields(original: &[u8], after: &Packet) -> Vec<(usize, Vec<u8>)> {
    let header = usize::from(original[IP_HEADER + 12] >> 4) * 4;
    let options = &original[IP_HEADER + TCP_HEADER..IP_HEADER + header];
    let mut fields = Vec::new();
    let walked = walk(options, |item| {
        let at = TCP_HEADER + item.at + 2;
        if is_timestamps(&item) {
            let stamps = after.options.timestamps.iter().flat_map(|stamps| [stamps.value, stamps.echo]);
            fields.push((at, stamps.flat_map(u32::to_be_bytes).collect()));
        } else if is_sack(&item) {
            let edges = after.options.sacks.iter().flat_map(|(first, last)| [first.0, last.0]);
            fields.push((at, edges.flat_map(u32::to_be_bytes).collect()));
        }
    });
    debug_assert!(walked.is_ok(), "the packet was parsed");
    fields
}

impl Patch {
    /// Replaces an address, which both checksums cover.
    fn address(&mut self, at: usize, new: [u8; 4]) {
        for half in [0, 2] {
            let word = [new[half], new[half + 1]];
            let old = [self.bytes[at + half], self.bytes[at + half + 1]];
            self.update(10, old, word);
            self.update(IP_HEADER + 16, old, word);
            self.bytes[at + half..at + half + 2].copy_from_slice(&word);
        }
    }

    /// Replaces bytes of the segment, at any alignment.
    fn segment(&mut self, at: usize, new: &[u8]) {
        for (index, byte) in new.iter().enumerate() {
            let position = IP_HEADER + at + index;
            let start = position - (at + index) % 2;
            let after = self.bytes.get(start + 1).copied();
            let old = [self.bytes[start], after.unwrap_or(0)];
            let mut word = old;
            word[position - start] = *byte;
            self.update(IP_HEADER + 16, old, word);
            self.bytes[position] = *byte;
        }
    }

    fn update(&mut self, checksum_at: usize, old: [u8; 2], new: [u8; 2]) {
        if old == new {
            return;
        }
        let checksum = super::word(&self.bytes, checksum_at);
        let value = updated(checksum, u16::from_be_bytes(old), u16::from_be_bytes(new));
        self.bytes[checksum_at..checksum_at + 2].copy_from_slice(&value.to_be_bytes());
    }
}
