//! Tests of certificates, and what other tests need of them.

use super::*;
use crate::config::TlsOptions;
use crate::temporary::Temporary;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// An authority that exists for one test.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        Authority::named("ours")
    }

    fn named(name: &str) -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), certificate }
    }

    /// A list on which nothing stands.
    fn list(&self) -> String {
        let params = rcgen::CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2020, 1, 1),
            next_update: rcgen::date_time_ymd(2100, 1, 1),
            crl_number: rcgen::SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: Vec::new(),
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().pem().unwrap()
    }

    /// A certificate with these names and its key, written with the authority's own into this directory, as options.
    pub(crate) fn issue(&self, directory: &Path, names: &[&str]) -> TlsOptions {
        self.issue_until(directory, names, 2100)
    }

    pub(crate) fn issue_until(&self, directory: &Path, names: &[&str], year: i32) -> TlsOptions {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            std::fs::write(&path, text).unwrap();
            Some(path)
        };
        TlsOptions {
            certificate: write("node.pem", &certificate),
            key: write("node.key", &key.serialize_pem()),
            authorities: write("ca.pem", &self.certificate),
            ..TlsOptions::default()
        }
    }
}

/// What a node with these options presents and believes.
pub(crate) fn certificates(options: TlsOptions) -> Certificates {
    let config = Config { tls: TlsOptions { cluster: true, ..options }, ..Config::default() };
    Certificates::read(&config).unwrap().unwrap()
}

fn read(options: TlsOptions) -> Result<Option<Certificates>, TlsError> {
    Certificates::read(&Config { tls: options, ..Config::default() })
}

#[test]
fn nothing_is_read_where_nothing_is_encrypted() {
    let missing = Some(PathBuf::from("/nowhere"));
    let options = TlsOptions { certificate: missing.clone(), key: missing, ..TlsOptions::default() };
    assert!(read(options).unwrap().is_none());
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let directory = Temporary::new();
    let whole = TlsOptions { port: 1, ..Authority::new().issue(directory.path(), &["dc1.ensue"]) };
    let fails = |options: TlsOptions| read(options).unwrap_err().to_string();
    assert_eq!(fails(TlsOptions { key: None, ..whole.clone() }), "`tls-port` needs `tls-key-file`");
    let cluster = TlsOptions { port: 0, cluster: true, certificate: None, ..whole.clone() };
    assert_eq!(fails(cluster), "`tls-cluster yes` needs `tls-cert-file`");
    let nobody = TlsOptions { authorities: None, ..whole.clone() };
    assert_eq!(fails(nobody.clone()), "`tls-auth-clients` needs `tls-ca-cert-file`");
    assert!(read(TlsOptions { clients: AuthClients::No, ..nobody }).is_ok());
    let swapped = TlsOptions { certificate: whole.key.clone(), ..whole.clone() };
    assert!(fails(swapped).ends_with("node.key holds no certificate"));
    let nowhere = TlsOptions { key: Some("/nowhere".into()), ..whole.clone() };
    assert!(fails(nowhere).starts_with("cannot read /nowhere: "));
    let other = Temporary::new();
    let foreign = Authority::new().issue(other.path(), &["dc1.ensue"]).key;
    assert!(fails(TlsOptions { key: foreign, ..whole }).contains("do not go together"));
}

#[test]
fn files_that_became_wrong_leave_the_certificates_as_they_were() {
    let directory = Temporary::new();
    let authority = Authority::new();
    let certificates = certificates(authority.issue(directory.path(), &["dc1.ensue"]));
    let before = certificates.for_clients();
    std::fs::write(directory.path().join("node.pem"), "nothing").unwrap();
    assert!(matches!(certificates.read_again(), Err(TlsError::NoCertificate { .. })));
    assert!(Arc::ptr_eq(&before, &certificates.for_clients()));
    authority.issue(directory.path(), &["dc1.ensue"]);
    certificates.read_again().unwrap();
    assert!(!Arc::ptr_eq(&before, &certificates.for_clients()));
}

#[test]
fn other_files_are_used_all_or_none() {
    let (directory, other) = (Temporary::new(), Temporary::new());
    let certificates = certificates(Authority::new().issue(directory.path(), &["dc1.ensue"]));
    let before = certificates.for_clients();
    let new = Authority::new().issue(other.path(), &["dc1.ensue"]);
    let name = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let half = CertificateFiles { certificate: name(&new.certificate), ..CertificateFiles::default() };
    assert!(matches!(certificates.replace(&half), Err(TlsError::Pair { .. })));
    let none = CertificateFiles { authorities: Some(String::new()), ..CertificateFiles::default() };
    assert!(matches!(certificates.replace(&none), Err(TlsError::Lacks { .. })));
    // What was refused is not read at the next signal either.
    certificates.read_again().unwrap();
    let again = certificates.for_clients();
    assert!(!Arc::ptr_eq(&before, &again));
    let pair = CertificateFiles { key: name(&new.key), ..half };
    certificates.replace(&pair).unwrap();
    assert!(!Arc::ptr_eq(&again, &certificates.for_clients()));
}

#[test]
fn a_list_of_revoked_certificates_is_read_with_the_others_or_nothing_is() {
    let directory = Temporary::new();
    let authority = Authority::new();
    let list = directory.path().join("ca.crl");
    std::fs::write(&list, authority.list()).unwrap();
    let options =
        TlsOptions { revocations: Some(list.clone()), ..authority.issue(directory.path(), &["dc1.ensue"]) };
    let certificates = certificates(options);
    let before = certificates.for_clients();
    std::fs::write(&list, "nothing").unwrap();
    assert!(matches!(certificates.read_again(), Err(TlsError::NoList { .. })));
    std::fs::remove_file(&list).unwrap();
    assert!(matches!(certificates.read_again(), Err(TlsError::File { .. })));
    assert!(Arc::ptr_eq(&before, &certificates.for_clients()));
    let none = CertificateFiles { revocations: Some(String::new()), ..CertificateFiles::default() };
    certificates.replace(&none).unwrap();
    assert!(!Arc::ptr_eq(&before, &certificates.for_clients()));
}

#[test]
fn an_authority_revokes_its_own_certificates_in_its_own_name() {
    let (directory, other) = (Temporary::new(), Temporary::new());
    let (ours, theirs) = (Authority::new(), Authority::named("others"));
    let own = ours.issue(directory.path(), &["dc1.ensue"]);
    let foreign = theirs.issue(other.path(), &["dc1.ensue"]);
    let (certificate, authority) = (own.certificate.unwrap(), own.authorities.unwrap());
    assert!(!revocation::serial(&certificate, &authority).unwrap().is_empty());
    assert!(matches!(
        revocation::serial(&foreign.certificate.unwrap(), &authority),
        Err(revocation::RevocationError::Foreign(_))
    ));
    let der = |authority: &Authority| {
        CertificateRevocationListDer::from_pem_slice(authority.list().as_bytes()).unwrap()
    };
    revocation::check_list(&der(&ours), &authority).unwrap();
    assert!(matches!(
        revocation::check_list(&der(&theirs), &authority),
        Err(revocation::RevocationError::OtherCluster)
    ));
}
