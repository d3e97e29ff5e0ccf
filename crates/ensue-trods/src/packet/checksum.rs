//! The checksum of IPv4 and TCP (RFC 1071), and its incremental update (RFC 1624).

/// A sum of 16-bit words in ones' complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum(u32);

const ADDRESSES: std::ops::Range<usize> = 12..20;

impl Checksum {
    /// The sum over `bytes`; a last odd byte counts as the high half of a word.
    pub fn of(bytes: &[u8]) -> Self {
        let mut sum = Self(0);
        sum.add(bytes);
        sum
    }

    /// The sum over a TCP segment and its pseudo header, whose addresses stand in the IPv4 header `ip`.
    pub fn of_segment(ip: &[u8], segment: &[u8]) -> Self {
        let mut sum = Self::of(&ip[ADDRESSES]);
        let length = u16::try_from(segment.len()).expect("the length of a segment is a field of 16 bits");
        sum.add(&[0, ip[9]]);
        sum.add(&length.to_be_bytes());
        sum.add(segment);
        sum
    }

    fn add(&mut self, bytes: &[u8]) {
        let mut sum = u64::from(self.0);
        for pair in bytes.chunks(2) {
            sum += u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        self.0 = u32::try_from(sum).expect("folded to 16 bits");
    }

    /// The checksum that goes into the packet: the complement of the sum.
    pub fn value(self) -> u16 {
        !u16::try_from(self.0).expect("folded to 16 bits")
    }
}

/// The checksum after one of its words changed from `old` to `new`: equation 3 of RFC 1624.
pub fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("folded to 16 bits")
}
