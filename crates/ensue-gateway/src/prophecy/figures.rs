//! What a process has counted, as text for those who ask over HTTP on a port of their own: one line a figure, in the
//! format of Prometheus.

use crate::limits::GREETING_MAX;
use crate::spawn;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Answers every request on this address with what `text` gives.
pub(super) fn serve(
    address: SocketAddr,
    text: impl Fn() -> Option<String> + Send + 'static,
) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    spawn("figures", move || {
        for stream in listener.incoming() {
            // Who asks may be gone, and may ask again.
            let _ = stream.and_then(|stream| answer(stream, &text().unwrap_or_default()));
        }
    })
}

fn answer(mut stream: TcpStream, text: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(GREETING_MAX))?;
    stream.set_write_timeout(Some(GREETING_MAX))?;
    let mut request = [0; 4096];
    // Whatever is asked for has one answer; a client that sends nothing gets none.
    if stream.read(&mut request)? == 0 {
        return Ok(());
    }
    let length = text.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
}

/// Adds a figure.
pub(super) fn push(text: &mut String, name: &str, replica: Option<&str>, value: u64) {
    use std::fmt::Write as _;
    let label = replica.map(|replica| format!("{{replica=\"{replica}\"}}")).unwrap_or_default();
    writeln!(text, "ensue_prophecy_{name}{label} {value}").expect("a string takes all");
}
