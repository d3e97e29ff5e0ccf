//! The initial sequence number that every server of a cluster derives alike (sections IV-B and V-C).
//!
//! The highest bit is the parity of the epoch, and the next one is 0: for bodies below 1 GiB, any acknowledgment tells
//! which of two neighbouring epochs its connection began in. The other 30 bits are a keyed hash of the four ends of
//! the connection and the epoch.

use crate::packet::Endpoint;
use crate::seq::Seq;

/// The key that all servers of a cluster share.
pub type ClusterKey = [u8; 32];

/// The initial sequence number of a connection that begins in `epoch`.
#[must_use]
pub fn initial(key: &ClusterKey, client: Endpoint, service: Endpoint, epoch: u64) -> Seq {
    let mut hasher = blake3::Hasher::new_keyed(key);
    for end in [client, service] {
        hasher.update(&end.address.octets());
        hasher.update(&end.port.to_be_bytes());
    }
    hasher.update(&epoch.to_be_bytes());
    let hash = hasher.finalize();
    let bytes = hash.as_bytes();
    let number = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) & 0x3fff_ffff;
    Seq(number | if epoch % 2 == 1 { 1 << 31 } else { 0 })
}

/// The initial sequence number of the connection that `ack` belongs to, which began in this epoch or the one before.
#[must_use]
pub fn of_acknowledgment(key: &ClusterKey, client: Endpoint, service: Endpoint, epoch: u64, ack: Seq) -> Seq {
    let parity = u64::from(ack.0 >> 31);
    let began = if epoch % 2 == parity { epoch } else { epoch.wrapping_sub(1) };
    initial(key, client, service, began)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::BODY_BYTES_MAX;
    use core::net::Ipv4Addr;

    #[test]
    fn an_acknowledgment_tells_its_epoch() {
        let end = |port| Endpoint { address: Ipv4Addr::new(10, 0, 0, 1), port };
        for port in 0..200 {
            for began in [6, 7] {
                let isn = initial(&[3; 32], end(port), end(80), began);
                for offset in [1, 2, 1 << 20, BODY_BYTES_MAX] {
                    let ack = isn.plus(offset);
                    for epoch in [began, began + 1] {
                        assert_eq!(of_acknowledgment(&[3; 32], end(port), end(80), epoch, ack), isn);
                    }
                }
            }
        }
        let other = initial(&[4; 32], end(1), end(80), 6);
        assert_ne!(initial(&[3; 32], end(1), end(80), 6), other);
    }
}
