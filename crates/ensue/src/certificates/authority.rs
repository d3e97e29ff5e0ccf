//! An authority in a folder: its certificate, its key, and what it issues.

use super::revoked::{self, Revoked};
use anyhow::{Context, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use time::{Duration, OffsetDateTime};

/// Who signs certificates.
pub(crate) struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

pub(super) const CERTIFICATE: &str = "ca.pem";
const KEY: &str = "ca.key";
const AUTHORITY_DAYS: i64 = 3_650;
/// Clocks of others may be behind.
const EARLIER: Duration = Duration::DAY;

impl Authority {
    /// The authority of this folder, which is made if there is none.
    pub(crate) fn open(folder: &Path, cluster: &str) -> anyhow::Result<Authority> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
        ensure!(
            certificate.exists() == key.exists(),
            "{} holds only one of {CERTIFICATE} and {KEY}: bring the other, or choose another folder",
            folder.display()
        );
        let params = params_of(cluster)?;
        if key.exists() {
            let text = fs::read_to_string(&key).with_context(|| format!("cannot read {}", key.display()))?;
            let pair = KeyPair::from_pem(&text).with_context(|| format!("{} is no key", key.display()))?;
            return Ok(Authority { folder: folder.into(), issuer: Issuer::new(params, pair) });
        }
        let pair = KeyPair::generate()?;
        write_secret(&key, &pair.serialize_pem())?;
        write(&certificate, &params.self_signed(&pair)?.pem())?;
        Ok(Authority { folder: folder.into(), issuer: Issuer::new(params, pair) })
    }

    /// The file with its own certificate.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.folder.join(CERTIFICATE)
    }

    /// Revokes the certificates in these files, and writes the list of all that were revoked: its file.
    pub(crate) fn revoke(&self, files: &[PathBuf]) -> anyhow::Result<PathBuf> {
        let mut added = Vec::new();
        for file in files {
            let serial = ensue_server::revocation::serial(file, &self.certificate())?;
            added.push(Revoked::now(serial, file));
        }
        revoked::write(&self.folder, &self.issuer, added, AUTHORITY_DAYS)
    }

    /// Writes a certificate with these names, and its key: their files.
    pub(crate) fn issue(
        &self,
        stem: &str,
        names: Vec<String>,
        days: u32,
    ) -> anyhow::Result<(PathBuf, PathBuf)> {
        let mut params = CertificateParams::new(names).context("a name that no certificate can hold")?;
        params.distinguished_name.push(DnType::CommonName, stem);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params, days.into());
        let pair = KeyPair::generate()?;
        let text = params.signed_by(&pair, &self.issuer)?.pem();
        let files = (self.folder.join(format!("{stem}.pem")), self.folder.join(format!("{stem}.key")));
        write_secret(&files.1, &pair.serialize_pem())?;
        write(&files.0, &text)?;
        Ok(files)
    }
}

/// What the authority says of itself: the same whenever its folder is opened, as its certificate was signed once.
fn params_of(cluster: &str) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, format!("authority of {cluster}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut params, AUTHORITY_DAYS);
    Ok(params)
}

fn set_validity(params: &mut CertificateParams, days: i64) {
    let now = OffsetDateTime::now_utc();
    params.not_before = now - EARLIER;
    params.not_after = now + Duration::days(days);
}

pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a file that its owner alone can read.
fn write_secret(path: &Path, text: &str) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    // A file that others can read stays so when it is written again.
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error).with_context(cannot),
        _ => {}
    }
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).with_context(cannot)?;
    file.write_all(text.as_bytes()).with_context(cannot)
}
