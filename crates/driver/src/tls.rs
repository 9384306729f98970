//! Whose certificate is taken for the server's.
//!
//! Roots come from the file that the user names, else from the system's store. A certificate that is itself
//! in the named file is taken as it is, in its time: servers that sign for themselves are common, and many
//! of their certificates say that they are an authority's, which a chain may not end with. Names are those
//! of the certificate's subjectAltName; a common name alone is not looked at.

use deltabench_model::endpoint::Tls;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a connection is not encrypted as it was asked to be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsFailure {
    /// The server does without.
    #[error("the server does not support TLS")]
    NotOffered,
    /// Its certificate is not trusted.
    #[error("the server's certificate is not trusted: {0}")]
    Untrusted(String),
    /// The certificates to trust cannot be had.
    #[error("no certificates to trust: {0}")]
    NoRoots(String),
    /// The two did not come to terms.
    #[error("TLS could not be started: {0}")]
    Handshake(String),
}

impl TlsFailure {
    /// What a failed step of the handshake means; the error itself if it has nothing to do with TLS.
    pub(crate) fn from_io(error: io::Error) -> Result<Self, io::Error> {
        match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(Error::InvalidCertificate(why)) => Ok(Self::Untrusted(why.to_string())),
            Some(other) => Ok(Self::Handshake(other.to_string())),
            None => Err(error),
        }
    }
}

/// How a connection of that kind is made; not for [`Tls::Off`], which is taken as unverified.
///
/// Errors: roots that cannot be read.
pub(crate) fn config(tls: &Tls) -> Result<Arc<ClientConfig>, TlsFailure> {
    // Reading the system's roots takes longer than the rest of a connection together.
    static KNOWN: Mutex<Vec<(Tls, Arc<ClientConfig>)>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, config)) = known.iter().find(|(other, _)| other == tls) {
        return Ok(Arc::clone(config));
    }
    let config = Arc::new(make(tls)?);
    known.push((tls.clone(), Arc::clone(&config)));
    Ok(config)
}

fn make(tls: &Tls) -> Result<ClientConfig, TlsFailure> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match tls {
        Tls::Off | Tls::Preferred | Tls::Unverified => Arc::new(Anybody(Arc::clone(&provider))),
        Tls::VerifyCa(file) => Arc::new(Authority::read(file.as_deref(), &provider, false)?),
        Tls::VerifyFull(file) => Arc::new(Authority::read(file.as_deref(), &provider, true)?),
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsFailure::Handshake(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    // Every connection is made in the same way, the first and the last.
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// Takes every certificate, but wants proof that the server has its key.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Takes certificates that lead to a trusted one.
#[derive(Debug)]
struct Authority {
    chains: Arc<WebPkiServerVerifier>,
    /// Certificates that are trusted as they are.
    named: Vec<CertificateDer<'static>>,
    name_matters: bool,
}

impl Authority {
    fn read(
        file: Option<&Path>,
        provider: &Arc<CryptoProvider>,
        name_matters: bool,
    ) -> Result<Self, TlsFailure> {
        let mut roots = RootCertStore::empty();
        let named = match file {
            Some(file) => from_file(file)?,
            None => Vec::new(),
        };
        if let Some(file) = file {
            for certificate in &named {
                let added = roots.add(certificate.clone());
                added.map_err(|error| unreadable(file, &error))?;
            }
        } else {
            // Some of the system's may be in forms that nobody reads any more.
            let system = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(system.certs);
            if roots.is_empty() {
                let mut why = vec!["the system has no certificates".to_owned()];
                why.extend(system.errors.iter().map(ToString::to_string));
                return Err(TlsFailure::NoRoots(why.join("; ")));
            }
        }
        let provider = Arc::clone(provider);
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| TlsFailure::NoRoots(error.to_string()))?;
        Ok(Self {
            chains,
            named,
            name_matters,
        })
    }
}

impl Authority {
    /// Whether a certificate is good at that time, whoever signed it.
    fn check_time(
        &self,
        certificate: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        // A chain's times are looked at first; without others between, they are this certificate's, and
        // what else is wrong with the chain does not matter.
        match self
            .chains
            .verify_server_cert(certificate, &[], name, &[], now)
        {
            Err(
                error @ Error::InvalidCertificate(
                    CertificateError::BadEncoding
                    | CertificateError::Expired
                    | CertificateError::ExpiredContext { .. }
                    | CertificateError::NotValidYet
                    | CertificateError::NotValidYetContext { .. },
                ),
            ) => Err(error),
            _ => Ok(()),
        }
    }
}

fn from_file(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFailure> {
    let read = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(file, &error))?;
    let certificates: Vec<_> = read
        .collect::<Result<_, _>>()
        .map_err(|error| unreadable(file, &error))?;
    if certificates.is_empty() {
        return Err(unreadable(file, &"it contains no certificate"));
    }
    Ok(certificates)
}

fn unreadable(file: &Path, why: &dyn std::fmt::Display) -> TlsFailure {
    TlsFailure::NoRoots(format!("{}: {why}", file.display()))
}

impl ServerCertVerifier for Authority {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.named.contains(certificate) {
            let parsed = ParsedCertificate::try_from(certificate)?;
            self.check_time(certificate, name, now)?;
            if self.name_matters {
                verify_server_name(&parsed, name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        let found = self
            .chains
            .verify_server_cert(certificate, between, name, ocsp, now);
        match found {
            // Names are looked at last, so everything else was good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.name_matters => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

    /// Text of an authority's certificate, and one that it signed for `db.example`.
    fn signed() -> (String, CertificateDer<'static>) {
        let mut of_authority = CertificateParams::new(Vec::new()).unwrap();
        of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let text = of_authority.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(of_authority, key);
        let of_server = CertificateParams::new(vec!["db.example".to_owned()]).unwrap();
        let server = of_server.signed_by(&KeyPair::generate().unwrap(), &issuer);
        (text, server.unwrap().der().clone())
    }

    fn verified(
        text: &str,
        name_matters: bool,
        certificate: &CertificateDer<'_>,
        host: &'static str,
    ) -> Result<(), Error> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("root.pem");
        std::fs::write(&file, text).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authority = Authority::read(Some(&file), &provider, name_matters).unwrap();
        let name = ServerName::try_from(host).unwrap();
        authority
            .verify_server_cert(certificate, &[], &name, &[], UnixTime::now())
            .map(drop)
    }

    #[test]
    fn a_certificate_must_come_from_the_authority_and_be_for_the_host_where_that_matters() {
        let (ours, server) = signed();
        let (others, _) = signed();
        for (authority, name_matters, host, good) in [
            (&ours, true, "db.example", true),
            (&ours, true, "db.elsewhere", false),
            (&ours, false, "db.elsewhere", true),
            (&others, true, "db.example", false),
            (&others, false, "db.example", false),
        ] {
            let found = verified(authority, name_matters, &server, host);
            assert_eq!(found.is_ok(), good, "{name_matters} {host}: {found:?}");
        }
    }

    #[test]
    fn a_certificate_that_signed_itself_is_taken_when_it_is_named() {
        for authority in [false, true] {
            let mut own = CertificateParams::new(vec!["db.example".to_owned()]).unwrap();
            if authority {
                own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            }
            let made = own.self_signed(&KeyPair::generate().unwrap()).unwrap();
            for (name_matters, host, good) in [
                (true, "db.example", true),
                (true, "db.elsewhere", false),
                (false, "db.elsewhere", true),
            ] {
                let found = verified(&made.pem(), name_matters, made.der(), host);
                assert_eq!(found.is_ok(), good, "{authority} {name_matters} {host}");
            }
        }
    }

    #[test]
    fn a_named_certificate_is_taken_in_its_time_only() {
        for (authority, name_matters) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            for (from, until, good) in
                [(2000, 4000, true), (2000, 2001, false), (4000, 4001, false)]
            {
                let mut own = CertificateParams::new(vec!["db.example".to_owned()]).unwrap();
                own.not_before = rcgen::date_time_ymd(from, 1, 1);
                own.not_after = rcgen::date_time_ymd(until, 1, 1);
                if authority {
                    own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
                }
                let made = own.self_signed(&KeyPair::generate().unwrap()).unwrap();
                let found = verified(&made.pem(), name_matters, made.der(), "db.example");
                assert_eq!(found.is_ok(), good, "{authority} {from} {until}: {found:?}");
            }
        }
    }

    #[test]
    fn roots_that_cannot_be_read_are_told_with_their_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("empty.pem");
        std::fs::write(&file, "").unwrap();
        for file in [file, directory.path().join("missing.pem")] {
            let failure = config(&Tls::VerifyFull(Some(file.clone()))).unwrap_err();
            assert!(matches!(&failure, TlsFailure::NoRoots(_)), "{failure}");
            assert!(failure.to_string().contains(&file.display().to_string()));
        }
    }
}
