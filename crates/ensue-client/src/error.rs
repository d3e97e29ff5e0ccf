//! What can go wrong between a client and a server, other than an answer that says no.

use ensue_resp::ParseError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum ClientError {
    #[error("cannot connect to {address}: {error}")]
    Connect { address: String, error: io::Error },
    #[error("the address {address} is not known: {error}")]
    Address { address: String, error: io::Error },
    #[error("the connection was closed")]
    Closed,
    #[error("no answer in time")]
    Timeout,
    #[error("the connection broke: {0}")]
    Broken(io::Error),
    #[error("what answers there does not speak the Redis protocol: {0}")]
    NotRedis(ParseError),
    #[error("cannot read {}: {error}", path.display())]
    File { path: PathBuf, error: String },
    #[error("'{0}' cannot be the name in a certificate")]
    ServerName(String),
    #[error("TLS: {0}")]
    Tls(rustls::Error),
    #[error("the server refused: {0}")]
    Refused(String),
}

// The messages hold their causes, so a cause is not given a second time as a source.
impl From<ParseError> for ClientError {
    fn from(error: ParseError) -> ClientError {
        ClientError::NotRedis(error)
    }
}

impl From<io::Error> for ClientError {
    /// An error of TLS arrives as one of the socket.
    fn from(error: io::Error) -> ClientError {
        let error = match error.downcast::<rustls::Error>() {
            Ok(error) => return ClientError::Tls(error),
            Err(error) => error,
        };
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ClientError::Timeout,
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionAborted => ClientError::Closed,
            _ => ClientError::Broken(error),
        }
    }
}
