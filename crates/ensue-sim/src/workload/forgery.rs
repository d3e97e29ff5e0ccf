//! A token as someone could forge it: from far in the future, or naming what a datacenter has never issued.
//!
//! The layout is that of `docs/sessions.md`'s token as it travels: base64url of version, keyspace, cluster, time,
//! facts and a seal. Clusters here have no keys, so that anybody can seal: what a token names is checked all the same.

use crate::world::options::Options;
use ensue_protocol::Registration;
use ensue_types::{
    Causes, DatacenterId, Dependency, Extent, LogicalTime, OperationId, PartitionId, Position, Source, Stamp,
};

const TIME: std::ops::Range<usize> = 10..18;
const LENGTH: std::ops::Range<usize> = 18..22;
const SEAL_BYTES: usize = 16;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// A place that no stream of a world comes to, in an incarnation that none begins.
const FAR: Position = Position(1 << 60);

/// What nobody may believe: beyond the bound of every clock, also of one that is wild, whose own server believes it.
pub(super) fn far_ms(options: &Options) -> u64 {
    2 * options.tuning.clock_ahead_ms_max + options.clock.wild_ms
}

/// The same token, from this millisecond since 1970. Nothing if the text is no token.
pub(super) fn at(text: &[u8], ms: u64) -> Option<Vec<u8>> {
    let mut content = content_of(text)?;
    content[TIME].copy_from_slice(&LogicalTime::from_ms(ms).0.to_le_bytes());
    Some(sealed(content))
}

/// The same token with one more write in its past, which this partition has not made and no clock of its world has
/// come to: from
/// this millisecond since 1970. Nothing if the text is no token of this protocol.
pub(crate) fn naming(
    text: &[u8],
    protocol: &Registration,
    (datacenter, partition): (DatacenterId, PartitionId),
    ms: u64,
) -> Option<Vec<u8>> {
    let content = content_of(text)?;
    let (header, causes) = content.split_at(LENGTH.end);
    let (time, mut causes) = (LogicalTime::from_ms(ms), Causes::decode(causes).ok()?);
    let operation = OperationId { datacenter, incarnation: FAR.incarnation(), partition, position: FAR };
    if protocol.promises.branches {
        let mut anchor = causes.states().ok()?.clone();
        anchor.operations.push(Dependency { operation, extent: Extent::Exact });
        causes = anchor.into();
    } else {
        let stamp = Stamp { time, datacenter, partition };
        let protocol = (protocol.make)(Default::default());
        protocol.record_write(&mut causes, &Source { operation, stamp, dependencies: None });
    }
    let causes = causes.encode();
    let mut forged = header.to_vec();
    forged[TIME].copy_from_slice(&time.0.to_le_bytes());
    forged[LENGTH].copy_from_slice(&(causes.len() as u32).to_le_bytes());
    forged.extend_from_slice(&causes);
    Some(sealed(forged))
}

/// A token's bytes before its seal.
fn content_of(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = decode(text)?;
    let end = bytes.len().checked_sub(SEAL_BYTES).filter(|&end| end >= LENGTH.end)?;
    bytes.truncate(end);
    Some(bytes)
}

fn sealed(mut content: Vec<u8>) -> Vec<u8> {
    let seal = blake3::keyed_hash(&[0; 32], &content);
    content.extend_from_slice(&seal.as_bytes()[..SEAL_BYTES]);
    encode(&content)
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for chunk in text.chunks(4) {
        let mut bits = 0_u32;
        for (place, character) in chunk.iter().enumerate() {
            let value = ALPHABET.iter().position(|letter| letter == character)?;
            bits |= (value as u32) << (18 - 6 * place);
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    Some(bytes)
}

fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        group[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(group);
        text.extend((0..=chunk.len()).map(|place| ALPHABET[(bits >> (18 - 6 * place)) as usize & 63]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{at, decode, encode, far_ms};
    use crate::rules::Rules;
    use crate::world::options::Options;

    /// Seeds 40005447 and 40005975 of the protocols that go by times: a clock so wild took what was refused by all
    /// others.
    #[test]
    fn no_clock_of_a_world_believes_a_forged_token() {
        let worlds = (0..1_000).map(|seed| Options::draw(seed, Rules::default()));
        let wild: Vec<Options> = worlds.filter(|options| options.clock.wild_ms > 0).collect();
        for options in &wild {
            let most_ms = options.clock.wild_ms + options.tuning.clock_ahead_ms_max;
            assert!(far_ms(options) > most_ms, "{:?}", options.clock);
        }
        assert!(!wild.is_empty());
    }

    #[test]
    fn text_and_bytes_go_both_ways() {
        for length in 0..20_u8 {
            let bytes: Vec<u8> = (0..length).map(|n| n.wrapping_mul(37)).collect();
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
        assert_eq!(at(b"no token!", 1), None);
    }
}
