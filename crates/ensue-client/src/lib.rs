//! A small blocking client: connect, ask, read the answer.
//!
//! Words go out as a Redis command, a [`Reply`] comes back; an error that the server answers is a reply too. Whatever
//! else goes wrong is a [`ClientError`]. It does not reconnect, retry, route or pool.

mod connection;
mod error;
mod recorder;
mod stream;

pub use connection::{Connection, Options};
pub use ensue_types::Reply;
pub use error::ClientError;
pub use recorder::{RecordedConnection, Recorder};
pub use stream::Tls;
