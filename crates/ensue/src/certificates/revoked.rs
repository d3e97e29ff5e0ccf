//! What an authority has revoked: a record of its own in a text file, and the list that is made of it.
//!
//! The list is signed anew with each run, so that there is one from the first certificate on and nodes can name its
//! file before anything is revoked. The record has a line for each certificate: its number, when it was revoked in
//! seconds since 1970, and its file.

use anyhow::Context;
use rcgen::{CertificateRevocationListParams, Issuer, KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber};
use std::fs;
use std::path::{Path, PathBuf};
use time::{Duration, OffsetDateTime};

const RECORD: &str = "revoked.txt";
const LIST: &str = "ca.crl";

/// One line of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Revoked {
    serial: Vec<u8>,
    at_s: i64,
    file: String,
}

impl Revoked {
    pub(super) fn now(serial: Vec<u8>, file: &Path) -> Revoked {
        let file = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Revoked { serial, at_s: OffsetDateTime::now_utc().unix_timestamp(), file }
    }

    fn line(&self) -> String {
        let digits: String = self.serial.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{digits} {} {}\n", self.at_s, self.file)
    }

    fn parse(line: &str) -> Option<Revoked> {
        let mut words = line.splitn(3, ' ');
        let (digits, at_s, file) = (words.next()?, words.next()?, words.next()?);
        let is_whole = digits.len() % 2 == 0 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let byte = |place: usize| u8::from_str_radix(&digits[place..place + 2], 16).ok();
        let serial = is_whole.then(|| (0..digits.len()).step_by(2).map(byte).collect::<Option<_>>())??;
        Some(Revoked { serial, at_s: at_s.parse().ok()?, file: file.into() })
    }
}

/// What the record in this folder has; nothing if there is none.
pub(super) fn read(folder: &Path) -> anyhow::Result<Vec<Revoked>> {
    let path = folder.join(RECORD);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let parsed =
        |line| Revoked::parse(line).with_context(|| format!("{}: '{line}' is no line", path.display()));
    text.lines().map(parsed).collect()
}

/// Adds to the record what is not there, and writes the list of all: its file.
pub(super) fn write(
    folder: &Path,
    issuer: &Issuer<'_, KeyPair>,
    added: Vec<Revoked>,
    days: i64,
) -> anyhow::Result<PathBuf> {
    let mut all = read(folder)?;
    for revoked in added {
        if all.iter().all(|known| known.serial != revoked.serial) {
            all.push(revoked);
        }
    }
    let now = OffsetDateTime::now_utc();
    let entry = |revoked: &Revoked| -> anyhow::Result<RevokedCertParams> {
        Ok(RevokedCertParams {
            serial_number: SerialNumber::from_slice(&revoked.serial),
            revocation_time: OffsetDateTime::from_unix_timestamp(revoked.at_s)?,
            reason_code: None,
            invalidity_date: None,
        })
    };
    let params = CertificateRevocationListParams {
        this_update: now - Duration::DAY,
        next_update: now + Duration::days(days),
        crl_number: SerialNumber::from(now.unix_timestamp().unsigned_abs()),
        issuing_distribution_point: None,
        revoked_certs: all.iter().map(entry).collect::<Result<_, _>>()?,
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let list = params.signed_by(issuer)?;
    ensue_server::revocation::check_list(list.der(), &folder.join(super::authority::CERTIFICATE))?;
    if !all.is_empty() {
        super::authority::write(&folder.join(RECORD), &all.iter().map(Revoked::line).collect::<String>())?;
    }
    let path = folder.join(LIST);
    super::authority::write(&path, &list.pem()?)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_record_is_read_as_it_was_written() {
        let revoked =
            Revoked { serial: vec![0, 0xa5, 0xff], at_s: 1_795_000_000, file: "oslo node0.pem".into() };
        assert_eq!(revoked.line(), "00a5ff 1795000000 oslo node0.pem\n");
        assert_eq!(Revoked::parse(revoked.line().trim_end()), Some(revoked));
        for wrong in ["", "a5 1", "a 1 x", "zz 1 x", "a5 y x", "é5 1 x"] {
            assert_eq!(Revoked::parse(wrong), None, "{wrong}");
        }
    }
}
