//! How a gateway is set up, and the rules that a simulated one can break.

use crate::isn::ClusterKey;
use crate::limits::OBJECTS_MAX;
use core::net::Ipv4Addr;
use std::collections::BTreeMap;
use thiserror::Error;

/// Where the state of a connection is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the key-value store: TRODS-KV.
    Kv,
    /// In the TCP timestamp option: TRODS-TS.
    Ts,
    /// In timestamps where the exchange allows it, and otherwise in the store.
    Hybrid,
}

impl Mode {
    /// Whether timestamps hold state.
    #[must_use]
    pub fn stamps(self) -> bool {
        self != Self::Kv
    }

    /// Whether there is a store.
    #[must_use]
    pub fn stores(self) -> bool {
        self != Self::Ts
    }
}

/// Rules that a correct gateway follows; a simulation breaks one to see what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The first packet of a response is blocked until its record is saved.
    pub block_first_response: bool,
    /// A request is not acknowledged before its response was.
    pub hold_request_ack: bool,
    /// Sequence numbers of a recovered connection continue those of the original one.
    pub splice_isn: bool,
    /// The response head of a recovered connection is discarded.
    pub discard_head: bool,
    /// Of two servers that answer one request, the second one adopts the record of the first.
    pub adopt_record: bool,
    /// Timestamps of a recovered connection continue those of the original one.
    pub translate_stamps: bool,
    /// Resets and early ends of a failed application are kept from the client.
    pub hide_resets: bool,
    /// A request goes to the application only where it is proved that the client has nothing of its response.
    pub prove_setup: bool,
    /// Packets count only where the client's own can stand in its stream.
    pub check_places: bool,
    /// The head of another server's response is adopted only if its body is the same.
    pub compare_heads: bool,
    /// A connection that was passed through is forgotten when it is over.
    pub forget_closed: bool,
}

impl Rules {
    /// Every rule is followed.
    pub const ALL: Self = Self {
        block_first_response: true,
        hold_request_ack: true,
        splice_isn: true,
        discard_head: true,
        adopt_record: true,
        translate_stamps: true,
        hide_resets: true,
        prove_setup: true,
        check_places: true,
        compare_heads: true,
        forget_closed: true,
    };

    /// The names under which [`Rules::without`] knows the rules.
    pub const NAMES: [&'static str; 11] = [
        "block-first-response",
        "hold-request-ack",
        "splice-isn",
        "discard-head",
        "adopt-record",
        "translate-stamps",
        "hide-resets",
        "prove-setup",
        "check-places",
        "compare-heads",
        "forget-closed",
    ];

    /// All rules but the named one. `None` if there is no such rule.
    #[must_use]
    pub fn without(name: &str) -> Option<Self> {
        let mut rules = Self::ALL;
        let rule = match name {
            "block-first-response" => &mut rules.block_first_response,
            "hold-request-ack" => &mut rules.hold_request_ack,
            "splice-isn" => &mut rules.splice_isn,
            "discard-head" => &mut rules.discard_head,
            "adopt-record" => &mut rules.adopt_record,
            "translate-stamps" => &mut rules.translate_stamps,
            "hide-resets" => &mut rules.hide_resets,
            "prove-setup" => &mut rules.prove_setup,
            "check-places" => &mut rules.check_places,
            "compare-heads" => &mut rules.compare_heads,
            "forget-closed" => &mut rules.forget_closed,
            _ => return None,
        };
        *rule = false;
        Some(rules)
    }
}

/// The objects that timestamps can name: the same list, in the same order, on every server of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    names: Vec<Vec<u8>>,
    indexes: BTreeMap<Vec<u8>, u16>,
}

/// A list of objects that timestamps cannot name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ObjectsError {
    /// More than the field of a timestamp can name.
    #[error("{0} objects, and a timestamp names at most 65536")]
    TooMany(usize),
    /// The same object twice.
    #[error("object {0} is in the list twice")]
    Twice(usize),
}

impl Objects {
    /// A table of objects, each as target, blank and host: `/film.mp4 example.org`.
    ///
    /// # Errors
    /// Too many objects, or one twice.
    pub fn new(names: Vec<Vec<u8>>) -> Result<Self, ObjectsError> {
        if names.len() > OBJECTS_MAX {
            return Err(ObjectsError::TooMany(names.len()));
        }
        let mut indexes = BTreeMap::new();
        for (index, name) in names.iter().enumerate() {
            let number = u16::try_from(index).expect("at most OBJECTS_MAX");
            if indexes.insert(name.clone(), number).is_some() {
                return Err(ObjectsError::Twice(index));
            }
        }
        Ok(Self { names, indexes })
    }

    /// The index of an object.
    #[must_use]
    pub fn index(&self, name: &[u8]) -> Option<u16> {
        self.indexes.get(name).copied()
    }

    /// The object of an index.
    #[must_use]
    pub fn name(&self, index: u16) -> Option<&[u8]> {
        self.names.get(usize::from(index)).map(Vec::as_slice)
    }
}

/// The set-up of one gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where state is kept.
    pub mode: Mode,
    /// Ports of the service; packets of other ports pass untouched.
    pub ports: Vec<u16>,
    /// The address from which recovered connections reach the local application; nothing else may use it.
    pub local_address: Ipv4Addr,
    /// The key that initial sequence numbers are derived with, the same on all servers.
    pub cluster_key: ClusterKey,
    /// Length of an epoch of initial sequence numbers in microseconds, the same on all servers.
    pub epoch_us: u64,
    /// The objects that timestamps can name.
    pub objects: Objects,
    /// Whether bodies without a length, and the chunks of chunked ones, are the same on every server.
    pub streams: bool,
    /// The rules, all followed but in a simulation.
    pub rules: Rules,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_each_object_once() {
        let names = |list: &[&str]| list.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>();
        let table = Objects::new(names(&["/a x", "/b x"])).expect("valid");
        assert_eq!((table.index(b"/b x"), table.name(1)), (Some(1), Some(&b"/b x"[..])));
        assert_eq!((table.index(b"/c x"), table.name(2)), (None, None));
        assert_eq!(Objects::new(names(&["/a x", "/a x"])).err(), Some(ObjectsError::Twice(1)));
        let many = (0..=OBJECTS_MAX).map(|index| index.to_string().into_bytes()).collect();
        assert_eq!(Objects::new(many).err(), Some(ObjectsError::TooMany(OBJECTS_MAX + 1)));
    }

    #[test]
    fn every_named_rule_can_be_broken() {
        for name in Rules::NAMES {
            assert_ne!(Rules::without(name), Some(Rules::ALL), "{name}");
        }
        assert_eq!(Rules::without("other"), None);
    }
}
