//! The flags by which the commands that ask a server use TLS; they are those of redis-cli.

use anyhow::Context;
use ensue_client::Tls;
use std::path::PathBuf;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TlsArgs {
    /// Encrypt the connection
    #[arg(long, requires = "cacert")]
    tls: bool,
    /// Certificates of the authorities that are believed, in PEM
    #[arg(long, value_name = "FILE", requires = "tls")]
    cacert: Option<PathBuf>,
    /// Certificate that is presented to the server, in PEM
    #[arg(long, value_name = "FILE", requires_all = ["tls", "key"])]
    cert: Option<PathBuf>,
    /// Key of that certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Name that the server's certificate must have, in place of the host
    #[arg(long, value_name = "NAME", requires = "tls")]
    sni: Option<String>,
}

impl TlsArgs {
    /// As where no flag is given.
    #[cfg(test)]
    pub(crate) fn none() -> TlsArgs {
        TlsArgs { tls: false, cacert: None, cert: None, key: None, sni: None }
    }

    /// How to encrypt, or nothing where the connection is not encrypted.
    pub(crate) fn options(&self) -> anyhow::Result<Option<Tls>> {
        if !self.tls {
            return Ok(None);
        }
        let authorities = self.cacert.clone().context("--tls needs --cacert")?;
        let certificate = self.cert.clone().zip(self.key.clone());
        Ok(Some(Tls { authorities, certificate, server_name: self.sni.clone() }))
    }
}
