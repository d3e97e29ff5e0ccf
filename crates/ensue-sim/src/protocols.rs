//! The protocols that a command line, a script or a file of settings may name.

use ensue_protocol::{ALL_NAMES, Registration};

/// The protocol of this name, or an error that lists them.
pub fn find(protocol: &str) -> Result<&'static Registration, String> {
    ensue_protocol::find(protocol)
        .ok_or_else(|| format!("there is no protocol {protocol}; the protocols are {}", ALL_NAMES.join(", ")))
}

/// The name of the protocol whose keyspaces have branches.
pub fn with_branches() -> &'static str {
    let mut registered = ALL_NAMES.iter().filter_map(|name| ensue_protocol::find(name));
    registered.find(|found| found.promises.branches).map(|found| found.name).expect("one is registered")
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_unknown_protocol_is_refused_with_a_list() {
        let error = super::find("paxos").unwrap_err();
        assert!(
            error.starts_with("there is no protocol paxos; the protocols are eiger, eventual"),
            "{error}"
        );
        assert!(super::find("tardis").is_ok_and(|found| found.promises.branches));
        assert_eq!(super::with_branches(), "tardis");
    }
}
