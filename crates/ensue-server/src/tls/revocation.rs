//! What an authority needs to know of its own files before it revokes: numbers of certificates, and whose lists are.

use super::{TlsError, certificates};
use std::path::Path;
use thiserror::Error;

/// Why a certificate cannot be revoked by an authority.
#[derive(Debug, Error)]
pub enum RevocationError {
    #[error(transparent)]
    File(#[from] TlsError),
    #[error("{what} cannot be read: {error}")]
    Malformed { what: &'static str, error: webpki::Error },
    #[error("{0} is not a certificate of this authority")]
    Foreign(String),
    #[error("the name of the authority is another one than that of `--cluster`")]
    OtherCluster,
}

/// The number of the first certificate in a file, which this authority has issued.
pub fn serial(certificate: &Path, authority: &Path) -> Result<Vec<u8>, RevocationError> {
    let malformed = |error| RevocationError::Malformed { what: "the certificate", error };
    let found = certificates(certificate)?;
    let issued = webpki::EndEntityCert::try_from(&found[0]).map_err(malformed)?;
    if issued.issuer() != name_of(authority)? {
        return Err(RevocationError::Foreign(certificate.display().to_string()));
    }
    Ok(issued.serial().to_vec())
}

/// Whether a list, in DER, is in the name of this authority: who is believed by its certificate has another name
/// otherwise, and nothing would be known of what it has issued.
pub fn check_list(list: &[u8], authority: &Path) -> Result<(), RevocationError> {
    let malformed = |error| RevocationError::Malformed { what: "the list", error };
    let list = webpki::BorrowedCertRevocationList::from_der(list).map_err(malformed)?;
    let list = webpki::CertRevocationList::from(list);
    if list.issuer() == name_of(authority)? { Ok(()) } else { Err(RevocationError::OtherCluster) }
}

fn name_of(authority: &Path) -> Result<Vec<u8>, RevocationError> {
    let malformed = |error| RevocationError::Malformed { what: "the certificate of the authority", error };
    let found = certificates(authority)?;
    Ok(webpki::anchor_from_trusted_cert(&found[0]).map_err(malformed)?.subject.to_vec())
}
