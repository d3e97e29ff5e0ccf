//! What a node presents to clients and to peers, and whom it believes: certificates and keys, read from files.
//!
//! `tls-cert-file`, `tls-key-file` and `tls-ca-cert-file` are named as Redis names them. Files are read again when the
//! operator asks (`SIGHUP`), all or none: connections that are open keep what they agreed on, later ones use the new
//! ones, and after an error everything stays as it was. A peer's certificate names its datacenter, and may name the
//! nodes that it is for; an address proves nothing, since nodes move.
//!
//! Where there are lists of revoked certificates, every certificate between the other side and its authority must be
//! one of which a list could tell: one of whose issuer there is no list is not believed.

mod names;
pub mod revocation;

use crate::config::{AuthClients, Config, TlsVersion};
use ensue_node::CertificateFiles;
pub(crate) use names::{NotNamed, check_datacenters, check_names, server_name};
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;

/// Why the certificates cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    #[error("`{needs}` needs `{lacks}`")]
    Lacks { needs: &'static str, lacks: &'static str },
    #[error("cannot read {}: {error}", path.display())]
    File { path: PathBuf, error: rustls::pki_types::pem::Error },
    #[error("{} holds no certificate", path.display())]
    NoCertificate { path: PathBuf },
    #[error("{} holds no list of revoked certificates", path.display())]
    NoList { path: PathBuf },
    #[error("a certificate of {} cannot be trusted: {error}", path.display())]
    Authority { path: PathBuf, error: rustls::Error },
    #[error("the certificate {} and the key {} do not go together: {error}", certificate.display(), key.display())]
    Pair { certificate: PathBuf, key: PathBuf, error: rustls::Error },
    #[error("the certificates of {} verify nobody: {error}", path.display())]
    Verifier { path: PathBuf, error: rustls::client::VerifierBuilderError },
    #[error(transparent)]
    Settings(#[from] rustls::Error),
}

/// The present certificates of a node, the same for all its cores.
#[derive(Clone, Debug)]
pub(crate) struct Certificates {
    /// The files that are used, and what was in them.
    state: Arc<RwLock<(Files, Present)>>,
}

/// Where they come from, and what they are for.
#[derive(Clone, Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    authorities: Option<PathBuf>,
    revocations: Option<PathBuf>,
    clients: AuthClients,
    versions: Vec<&'static SupportedProtocolVersion>,
    for_peers: bool,
    for_clients: bool,
    for_metrics: bool,
}

#[derive(Clone, Debug)]
struct Present {
    clients: Arc<ServerConfig>,
    /// Who watches the node logs in as a user, and has no certificate.
    metrics: Option<Arc<ServerConfig>>,
    peers: Option<ForPeers>,
}

/// Both sides of a link between peers.
#[derive(Clone, Debug)]
pub(crate) struct ForPeers {
    pub(crate) accepting: Arc<ServerConfig>,
    pub(crate) dialling: Arc<ClientConfig>,
}

impl Certificates {
    /// Reads what the configuration names; nothing if nobody uses TLS.
    pub(crate) fn read(config: &Config) -> Result<Option<Certificates>, TlsError> {
        let Some(files) = Files::of(config)? else { return Ok(None) };
        let present = files.read()?;
        Ok(Some(Certificates { state: Arc::new(RwLock::new((files, present))) }))
    }

    /// Reads the files again. After an error the earlier certificates stay.
    pub(crate) fn read_again(&self) -> Result<(), TlsError> {
        self.replace(&CertificateFiles::default())
    }

    /// Reads these files, and for what is not named the present ones, and uses them from then on. After an error
    /// everything stays as it was.
    pub(crate) fn replace(&self, named: &CertificateFiles) -> Result<(), TlsError> {
        let mut files = self.state.read().unwrap_or_else(PoisonError::into_inner).0.clone();
        if let Some(certificate) = &named.certificate {
            files.certificate = PathBuf::from(certificate);
        }
        if let Some(key) = &named.key {
            files.key = PathBuf::from(key);
        }
        if let Some(authorities) = &named.authorities {
            files.authorities = (!authorities.is_empty()).then(|| PathBuf::from(authorities));
        }
        if let Some(revocations) = &named.revocations {
            files.revocations = (!revocations.is_empty()).then(|| PathBuf::from(revocations));
        }
        files.check()?;
        let present = files.read()?;
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = (files, present);
        Ok(())
    }

    pub(crate) fn for_clients(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner).1.clients)
    }

    /// None where the metrics port speaks plain HTTP.
    pub(crate) fn for_metrics(&self) -> Option<Arc<ServerConfig>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).1.metrics.clone()
    }

    /// None where links between peers are not encrypted.
    pub(crate) fn for_peers(&self) -> Option<ForPeers> {
        self.state.read().unwrap_or_else(PoisonError::into_inner).1.peers.clone()
    }
}

impl Files {
    fn of(config: &Config) -> Result<Option<Files>, TlsError> {
        let tls = &config.tls;
        let needs = match (tls.cluster, tls.port, config.serves_metrics_over_tls()) {
            (true, _, _) => "tls-cluster yes",
            (false, 0, true) => "metrics-tls yes",
            (false, 0, false) => return Ok(None),
            (false, _, _) => "tls-port",
        };
        let named = |file: &Option<PathBuf>, lacks| file.clone().ok_or(TlsError::Lacks { needs, lacks });
        let files = Files {
            certificate: named(&tls.certificate, "tls-cert-file")?,
            key: named(&tls.key, "tls-key-file")?,
            authorities: tls.authorities.clone(),
            revocations: tls.revocations.clone(),
            clients: tls.clients,
            versions: tls.versions.iter().map(supported).collect(),
            for_peers: tls.cluster,
            for_clients: tls.port != 0,
            for_metrics: config.serves_metrics_over_tls(),
        };
        files.check()?;
        Ok(Some(files))
    }

    /// Who verifies others needs authorities.
    fn check(&self) -> Result<(), TlsError> {
        let needs = match (self.for_peers, self.for_clients && self.clients != AuthClients::No) {
            (true, _) => "tls-cluster yes",
            (false, true) => "tls-auth-clients",
            (false, false) => return Ok(()),
        };
        match self.authorities {
            Some(_) => Ok(()),
            None => Err(TlsError::Lacks { needs, lacks: "tls-ca-cert-file" }),
        }
    }

    fn read(&self) -> Result<Present, TlsError> {
        let trusted = self.trusted()?;
        let clients = match (&trusted, self.clients) {
            (Some(trusted), AuthClients::Yes | AuthClients::Optional) => {
                self.accepting(Some(trusted), self.clients == AuthClients::Optional)?
            }
            _ => self.accepting(None, false)?,
        };
        let peers = match (&trusted, self.for_peers) {
            (Some(trusted), true) => Some(ForPeers {
                accepting: self.accepting(Some(trusted), false)?,
                dialling: self.dialling(trusted)?,
            }),
            _ => None,
        };
        let metrics = self.for_metrics.then(|| self.accepting(None, false)).transpose()?;
        Ok(Present { clients, metrics, peers })
    }

    fn trusted(&self) -> Result<Option<Trusted>, TlsError> {
        let Some(path) = &self.authorities else { return Ok(None) };
        let revoked = self.revocations.as_deref().map(revocations).transpose()?.unwrap_or_default();
        Ok(Some(Trusted { roots: Arc::new(roots(path)?), revoked }))
    }

    /// The side that is dialled; with somebody to trust, whoever dials must present a certificate, or may.
    fn accepting(&self, trusted: Option<&Trusted>, is_optional: bool) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&self.versions)?;
        let builder = match trusted {
            None => builder.with_no_client_auth(),
            Some(Trusted { roots, revoked }) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider)
                    .with_crls(revoked.iter().cloned());
                let verifier = if is_optional { verifier.allow_unauthenticated() } else { verifier };
                builder.with_client_cert_verifier(verifier.build().map_err(|error| self.unverified(error))?)
            }
        };
        let (chain, key) = self.own()?;
        builder.with_single_cert(chain, key).map(Arc::new).map_err(|error| self.unpaired(error))
    }

    fn dialling(&self, trusted: &Trusted) -> Result<Arc<ClientConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = Arc::clone(&trusted.roots);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .with_crls(trusted.revoked.iter().cloned());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.versions)?
            .with_webpki_verifier(verifier.build().map_err(|error| self.unverified(error))?);
        let (chain, key) = self.own()?;
        builder.with_client_auth_cert(chain, key).map(Arc::new).map_err(|error| self.unpaired(error))
    }

    fn own(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| TlsError::File { path: self.key.clone(), error })?;
        Ok((certificates(&self.certificate)?, key))
    }

    fn unverified(&self, error: rustls::client::VerifierBuilderError) -> TlsError {
        TlsError::Verifier { path: self.authorities.clone().unwrap_or_default(), error }
    }

    fn unpaired(&self, error: rustls::Error) -> TlsError {
        TlsError::Pair { certificate: self.certificate.clone(), key: self.key.clone(), error }
    }
}

/// Who is believed, and what of them is not any more.
struct Trusted {
    roots: Arc<RootCertStore>,
    revoked: Vec<CertificateRevocationListDer<'static>>,
}

fn revocations(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let unread = |error| TlsError::File { path: path.into(), error };
    let found = CertificateRevocationListDer::pem_file_iter(path).map_err(unread)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(unread)?;
    if found.is_empty() { Err(TlsError::NoList { path: path.into() }) } else { Ok(found) }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unread = |error| TlsError::File { path: path.into(), error };
    let found = CertificateDer::pem_file_iter(path).map_err(unread)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(unread)?;
    if found.is_empty() { Err(TlsError::NoCertificate { path: path.into() }) } else { Ok(found) }
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| TlsError::Authority { path: path.into(), error })?;
    }
    Ok(roots)
}

fn supported(version: &TlsVersion) -> &'static SupportedProtocolVersion {
    match version {
        TlsVersion::V1_2 => &rustls::version::TLS12,
        TlsVersion::V1_3 => &rustls::version::TLS13,
    }
}

#[cfg(test)]
pub(crate) mod tests;
