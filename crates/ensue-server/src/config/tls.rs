//! What the configuration says of TLS; the names are those of Redis.

use std::path::PathBuf;

/// `tls-…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// Where clients are served over TLS; zero is nowhere.
    pub port: u16,
    /// The certificate of this node, and those between it and its authority, in PEM.
    pub certificate: Option<PathBuf>,
    /// Its key, in PEM.
    pub key: Option<PathBuf>,
    /// The authorities whose certificates are believed, in PEM.
    pub authorities: Option<PathBuf>,
    /// Lists of certificates that their authorities have revoked, in PEM.
    pub revocations: Option<PathBuf>,
    pub clients: AuthClients,
    /// Links between nodes are encrypted, and both sides present certificates.
    pub cluster: bool,
    /// What may be spoken; never empty.
    pub versions: Vec<TlsVersion>,
}

/// Whether clients present certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthClients {
    No,
    /// They may; a wrong one is refused.
    Optional,
    Yes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    V1_2,
    V1_3,
}

impl Default for TlsOptions {
    fn default() -> TlsOptions {
        TlsOptions {
            port: 0,
            certificate: None,
            key: None,
            authorities: None,
            revocations: None,
            clients: AuthClients::Yes,
            cluster: false,
            versions: vec![TlsVersion::V1_2, TlsVersion::V1_3],
        }
    }
}

impl AuthClients {
    pub(super) fn parse(word: &str) -> Result<AuthClients, String> {
        match word {
            "no" => Ok(AuthClients::No),
            "optional" => Ok(AuthClients::Optional),
            "yes" => Ok(AuthClients::Yes),
            _ => Err(format!("'{word}' is neither yes, no nor optional")),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            AuthClients::No => "no",
            AuthClients::Optional => "optional",
            AuthClients::Yes => "yes",
        }
    }
}

impl TlsVersion {
    /// Versions in one value, with blanks between; an empty one is all that there are.
    pub(super) fn parse(words: &str) -> Result<Vec<TlsVersion>, String> {
        let version = |word: &str| match word.to_ascii_lowercase().as_str() {
            "tlsv1.2" => Ok(TlsVersion::V1_2),
            "tlsv1.3" => Ok(TlsVersion::V1_3),
            _ => Err(format!("'{word}' is no version that is spoken: TLSv1.2 and TLSv1.3 are")),
        };
        let mut versions = Vec::new();
        for word in words.split_ascii_whitespace() {
            let version = version(word)?;
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        Ok(if versions.is_empty() { TlsOptions::default().versions } else { versions })
    }

    pub(super) fn names(versions: &[TlsVersion]) -> String {
        let name = |version: &TlsVersion| match version {
            TlsVersion::V1_2 => "TLSv1.2",
            TlsVersion::V1_3 => "TLSv1.3",
        };
        versions.iter().map(name).collect::<Vec<_>>().join(" ")
    }
}
