//! How links are encrypted, and what a certificate must say of a peer.

use crate::config::Cluster;
use crate::link::LinkError;
use crate::tls::{Certificates, ForPeers, NotNamed, check_datacenters, check_names, server_name};
use crate::transport::Transport;
use ensue_wire::CoreName;
use mio::net::TcpStream;
use rustls::pki_types::CertificateDer;

/// TLS on every link, each side with a certificate (`tls-cluster yes`).
#[derive(Debug)]
pub(crate) struct Encryption {
    certificates: Certificates,
    cluster: Cluster,
}

impl Encryption {
    /// None where links are not encrypted.
    pub(crate) fn new(certificates: Option<&Certificates>, cluster: &Cluster) -> Option<Encryption> {
        let certificates = certificates.filter(|certificates| certificates.for_peers().is_some())?;
        Some(Encryption { certificates: certificates.clone(), cluster: cluster.clone() })
    }

    fn settings(&self) -> ForPeers {
        self.certificates.for_peers().expect("files that were read again are for what they were for before")
    }

    pub(super) fn accept(&self, stream: TcpStream) -> Result<Transport, LinkError> {
        Ok(Transport::accept(stream, &self.settings().accepting)?)
    }

    pub(super) fn dial(&self, stream: TcpStream, peer: CoreName) -> Result<Transport, LinkError> {
        let datacenter = self.datacenter(peer);
        let name = server_name(&self.cluster.name, datacenter)
            .map_err(|_| LinkError::NoServerName(format!("{datacenter}.{}", self.cluster.name)))?;
        Ok(Transport::dial(stream, &self.settings().dialling, name)?)
    }

    /// Whether the certificate is of any datacenter of the cluster.
    pub(super) fn check_any(&self, certificate: Option<&CertificateDer<'_>>) -> Result<(), NotNamed> {
        let names = self.cluster.datacenters.iter().map(|datacenter| datacenter.name.as_str());
        check_datacenters(certificate, &self.cluster.name, names)
    }

    /// Whether the certificate is of the node that this core is of.
    pub(super) fn check(
        &self,
        certificate: Option<&CertificateDer<'_>>,
        peer: CoreName,
    ) -> Result<(), NotNamed> {
        let nodes = self.cluster.datacenters.get(usize::from(peer.datacenter.0)).map(|there| &there.nodes);
        let node = nodes.and_then(|nodes| nodes.iter().position(|node| node.has_core(peer.core)));
        // A core of no node is refused before this, as one that is not expected.
        check_names(certificate, &self.cluster.name, self.datacenter(peer), node.unwrap_or(usize::MAX))
    }

    fn datacenter(&self, peer: CoreName) -> &str {
        self.cluster.datacenters.get(usize::from(peer.datacenter.0)).map_or("", |there| there.name.as_str())
    }
}
