//! What carries a connection: a socket, or TLS over it.

use crate::error::ClientError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to encrypt a connection.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The authorities whose certificates are believed, in PEM.
    pub authorities: PathBuf,
    /// What is presented to servers that ask for it, and its key, in PEM.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The name that the server's certificate must have; none is the host that is dialled.
    pub server_name: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// The handshake happens with the first bytes.
    pub(crate) fn over(socket: TcpStream, host: &str, tls: Option<&Tls>) -> Result<Stream, ClientError> {
        let Some(tls) = tls else { return Ok(Stream::Plain(socket)) };
        let name = tls.server_name.as_deref().unwrap_or(host).to_string();
        let server = ServerName::try_from(name.clone()).map_err(|_| ClientError::ServerName(name))?;
        let session = ClientConnection::new(settings(tls)?, server).map_err(ClientError::Tls)?;
        Ok(Stream::Tls(Box::new(StreamOwned::new(session, socket))))
    }
}

fn settings(tls: &Tls) -> Result<Arc<ClientConfig>, ClientError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&tls.authorities)? {
        roots.add(certificate).map_err(ClientError::Tls)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ClientError::Tls)?
        .with_root_certificates(roots);
    let settings = match &tls.certificate {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| unread(key, error))?;
            builder.with_client_auth_cert(chain, key).map_err(ClientError::Tls)?
        }
    };
    Ok(Arc::new(settings))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let found = CertificateDer::pem_file_iter(path).map_err(|error| unread(path, error))?;
    found.collect::<Result<_, _>>().map_err(|error| unread(path, error))
}

fn unread(path: &Path, error: rustls::pki_types::pem::Error) -> ClientError {
    ClientError::File { path: path.into(), error: error.to_string() }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(buffer),
            Stream::Tls(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}
