//! The names in a peer's certificate: `DATACENTER.CLUSTER` says for which datacenter it may speak, and
//! `nodeN.DATACENTER.CLUSTER`, where there is one, for which of its nodes only.
//!
//! They are subject alternative names of the kind DNS, which every authority can issue; nobody looks them up.
//! Upper and lower case differ, as they do in the configuration.

use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use thiserror::Error;

/// Why a certificate does not prove who a peer says it is.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum NotNamed {
    #[error("it presented no certificate")]
    Nothing,
    #[error("its certificate cannot be read")]
    Unreadable,
    #[error("its certificate names no datacenter of this cluster but {names}")]
    Nobody { names: String },
    #[error("its certificate does not name {name} but {names}")]
    Datacenter { name: String, names: String },
    #[error("its certificate is for other nodes than {name}: {names}")]
    Node { name: String, names: String },
}

/// The name of a datacenter in certificates.
pub(crate) fn server_name(
    cluster: &str,
    datacenter: &str,
) -> Result<ServerName<'static>, InvalidDnsNameError> {
    ServerName::try_from(format!("{datacenter}.{cluster}"))
}

/// Whether this certificate is of any of these datacenters: whoever has another one, such as a client, is told nothing.
pub(crate) fn check_datacenters<'a>(
    certificate: Option<&CertificateDer<'_>>,
    cluster: &str,
    datacenters: impl IntoIterator<Item = &'a str>,
) -> Result<(), NotNamed> {
    with_names(certificate, |names| {
        let mut known = datacenters.into_iter().map(|datacenter| format!("{datacenter}.{cluster}"));
        match known.any(|name| names.contains(&name.as_str())) {
            true => Ok(()),
            false => Err(NotNamed::Nobody { names: listed(names) }),
        }
    })
}

/// Whether whoever proved to own this certificate may speak for this node.
pub(crate) fn check_names(
    certificate: Option<&CertificateDer<'_>>,
    cluster: &str,
    datacenter: &str,
    node: usize,
) -> Result<(), NotNamed> {
    with_names(certificate, |names| judge(names, cluster, datacenter, node))
}

fn with_names(
    certificate: Option<&CertificateDer<'_>>,
    judge: impl FnOnce(&[&str]) -> Result<(), NotNamed>,
) -> Result<(), NotNamed> {
    let certificate = certificate.ok_or(NotNamed::Nothing)?;
    let certificate = webpki::EndEntityCert::try_from(certificate).map_err(|_| NotNamed::Unreadable)?;
    judge(&certificate.valid_dns_names().collect::<Vec<_>>())
}

fn judge(names: &[&str], cluster: &str, datacenter: &str, node: usize) -> Result<(), NotNamed> {
    let whole = format!("{datacenter}.{cluster}");
    if !names.contains(&whole.as_str()) {
        return Err(NotNamed::Datacenter { name: whole, names: listed(names) });
    }
    let of_nodes: Vec<&str> = names.iter().copied().filter(|name| is_of_a_node(name, &whole)).collect();
    let own = format!("node{node}.{whole}");
    if of_nodes.is_empty() || of_nodes.contains(&own.as_str()) {
        return Ok(());
    }
    Err(NotNamed::Node { name: own, names: listed(&of_nodes) })
}

fn is_of_a_node(name: &str, datacenter: &str) -> bool {
    let node = name.strip_suffix(datacenter).and_then(|rest| rest.strip_suffix('.'));
    let number = node.and_then(|node| node.strip_prefix("node"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "nobody".into() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_speaks_for_its_datacenter_and_for_its_nodes_only() {
        let whole = ["localhost", "dc1.shop"];
        assert_eq!(judge(&whole, "shop", "dc1", 7), Ok(()));
        assert!(matches!(judge(&whole, "shop", "dc2", 0), Err(NotNamed::Datacenter { .. })));
        assert!(matches!(judge(&whole, "other", "dc1", 0), Err(NotNamed::Datacenter { .. })));
        assert!(matches!(judge(&["DC1.shop"], "shop", "dc1", 0), Err(NotNamed::Datacenter { .. })));
        let narrowed = ["dc1.shop", "node1.dc1.shop", "node0.dc2.shop"];
        assert_eq!(judge(&narrowed, "shop", "dc1", 1), Ok(()));
        assert!(matches!(judge(&narrowed, "shop", "dc1", 0), Err(NotNamed::Node { .. })));
        assert!(judge(&["node1.dc1.shop"], "shop", "dc1", 1).is_err(), "the datacenter is named, too");
        assert!(judge(&[], "shop", "dc1", 0).is_err());
    }
}
