//! The flags of TLS: whom a client trusts, and what a server shows.

use std::path::{Path, PathBuf};

use antiphon::Endpoint;
use antiphon::transport::tls::{SelfSigned, TlsClient, TlsError, TlsServer};
use antiphon_check::raw::TlsOptions;
use clap::Args;

use crate::exit::Failure;
use crate::output;

/// Whom to trust, and what to show.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ClientTls {
    /// Trust the certificates of this file too, in PEM: authorities, or one that is self-signed
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    cacert: Option<PathBuf>,
    /// Show this certificate to a server that asks for one, in PEM
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    cert: Option<PathBuf>,
    /// The key to --cert, in PEM [default: that file]
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires = "cert")]
    key: Option<PathBuf>,
    /// Believe any server, whatever it shows: whoever is in between can read and change everything
    #[arg(short = 'k', long, help_heading = "TLS", conflicts_with = "cacert")]
    insecure: bool,
}

impl ClientTls {
    /// What these flags mean for calls to these endpoints.
    pub(crate) fn client<'a>(
        &self,
        endpoints: impl IntoIterator<Item = &'a Endpoint>,
    ) -> Result<TlsClient, Failure> {
        self.applies_to(endpoints)?;
        let mut tls = TlsClient::new();
        if let Some(path) = &self.cacert {
            tls = tls.extra_roots(read(path)?).map_err(|error| unusable(path, &error))?;
        }
        if let Some(path) = &self.cert {
            let key = read(self.key.as_ref().unwrap_or(path))?;
            let shown = tls.client_certificate(read(path)?, key);
            tls = shown.map_err(|error| unusable(path, &error))?;
        }
        Ok(if self.insecure { tls.dangerously_accept_any_certificate() } else { tls })
    }

    /// Like `client`, for `check` and `bench`, which do not use the library.
    pub(crate) fn raw<'a>(
        &self,
        endpoints: impl IntoIterator<Item = &'a Endpoint>,
    ) -> Result<TlsOptions, Failure> {
        self.applies_to(endpoints)?;
        let unusable =
            |path: &Path, reason: String| Failure::usage(format!("{}: {reason}", path.display()));
        let mut tls = TlsOptions::default();
        if let Some(path) = &self.cacert {
            tls = tls.extra_roots(&read(path)?).map_err(|reason| unusable(path, reason))?;
        }
        if let Some(path) = &self.cert {
            let key = read(self.key.as_ref().unwrap_or(path))?;
            let shown = tls.client_certificate(&read(path)?, &key);
            tls = shown.map_err(|reason| unusable(path, reason))?;
        }
        Ok(if self.insecure { tls.accept_any_certificate() } else { tls })
    }

    fn applies_to<'a>(
        &self,
        endpoints: impl IntoIterator<Item = &'a Endpoint>,
    ) -> Result<(), Failure> {
        let is_said = self.insecure || self.cacert.is_some() || self.cert.is_some();
        if is_said && !endpoints.into_iter().any(Endpoint::is_secure) {
            return Err(Failure::usage("--cacert, --cert and -k are for TLS")
                .hint("call https://, wss:// or tls://"));
        }
        Ok(())
    }

    /// Adds the flag that helps to a failure that TLS is the reason of.
    pub(crate) fn advise(&self, failure: Failure) -> Failure {
        let trust = "--cacert FILE trusts a certificate, or its authority; -k trusts any";
        failure
            .hint_where("trust its authority", trust)
            .hint_where("is for another name", "-k believes it all the same")
            .hint_where("asks for a client certificate", "--cert FILE --key FILE shows one")
    }
}

/// What is shown, and which clients are taken.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerTls {
    /// Show this certificate, in PEM, with those that lead to its authority
    #[arg(long, value_name = "FILE", help_heading = "TLS", conflicts_with = "tls_self_signed")]
    tls_cert: Option<PathBuf>,
    /// The key to --tls-cert, in PEM [default: that file]
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Take only clients with a certificate of the authorities in this file, in PEM
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    tls_client_ca: Option<PathBuf>,
    /// Make a certificate on the spot, to try TLS with; FILE gets it in PEM, for clients to trust
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    #[arg(num_args = 0..=1, require_equals = true)]
    tls_self_signed: Option<Option<PathBuf>>,
}

/// What a server shows.
pub(crate) struct Shown {
    pub(crate) tls: TlsServer,
    made: Option<(SelfSigned, Option<PathBuf>)>,
}

impl ServerTls {
    /// What these flags mean for a server on these endpoints, which goes by these names too.
    pub(crate) fn server(
        &self,
        endpoints: &[Endpoint],
        names: &[String],
    ) -> Result<Option<Shown>, Failure> {
        let is_said = self.tls_cert.is_some()
            || self.tls_self_signed.is_some()
            || self.tls_client_ca.is_some();
        let Some(secure) = endpoints.iter().find(|endpoint| endpoint.is_secure()) else {
            let unused = Failure::usage("no endpoint here speaks TLS");
            return if is_said {
                Err(unused.hint("serve https://, wss:// or tls://"))
            } else {
                Ok(None)
            };
        };
        let mut shown = match (&self.tls_cert, &self.tls_self_signed) {
            (Some(path), _) => Shown { tls: self.own(path)?, made: None },
            (None, Some(file)) => Shown::made(file.clone(), endpoints, names)?,
            (None, None) => {
                return Err(Failure::usage(format!("{secure} has no certificate to show")).hint(
                    "--tls-cert FILE --tls-key FILE names one; --tls-self-signed makes one",
                ));
            }
        };
        if let Some(path) = &self.tls_client_ca {
            let asking = shown.tls.require_client_certificates(read(path)?);
            shown.tls = asking.map_err(|error| unusable(path, &error))?;
        }
        Ok(Some(shown))
    }

    fn own(&self, path: &Path) -> Result<TlsServer, Failure> {
        let key = read(self.tls_key.as_deref().unwrap_or(path))?;
        TlsServer::from_pem(read(path)?, key).map_err(|error| unusable(path, &error))
    }
}

impl Shown {
    /// A certificate for this machine, and for the hosts that the endpoints name.
    fn made(
        file: Option<PathBuf>,
        endpoints: &[Endpoint],
        names: &[String],
    ) -> Result<Self, Failure> {
        let mut all = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        all.extend(endpoints.iter().filter_map(host).chain(names.iter().cloned()));
        all.sort();
        all.dedup();
        let failed = |error: TlsError| Failure::usage(format!("no certificate is made: {error}"));
        let made = SelfSigned::new(all).map_err(failed)?;
        let tls = made.server().map_err(failed)?;
        Ok(Self { tls, made: Some((made, file)) })
    }

    /// Writes the certificate that was made where it is wanted: once the server has its endpoints, or
    /// one that has none would take the certificate of another's clients away.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        let Some((made, Some(path))) = &self.made else { return Ok(()) };
        std::fs::write(path, made.certificate_pem()).map_err(|error| {
            Failure::usage(format!("{} cannot be written: {error}", path.display()))
        })
    }

    /// Says which certificate was made; gives the flag by which curl and `antiphon` trust it.
    pub(crate) fn announce(&self) -> String {
        let Some((made, file)) = &self.made else { return String::new() };
        output::note(&format!("self-signed certificate: SHA-256 {}", made.fingerprint()));
        match file {
            Some(file) => format!(" --cacert {}", file.display()),
            None => {
                output::note(
                    "--tls-self-signed=FILE writes it, for clients to trust: --cacert FILE",
                );
                " -k".to_owned()
            }
        }
    }
}

/// The host that an endpoint names, if it is one.
fn host(endpoint: &Endpoint) -> Option<String> {
    let (Endpoint::Http { authority, .. }
    | Endpoint::Ws { authority, .. }
    | Endpoint::Tcp { authority, .. }) = endpoint
    else {
        return None;
    };
    let any = ["0.0.0.0", "::"];
    (!any.contains(&&*authority.host)).then(|| authority.host.clone())
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let unread = |error| Failure::usage(format!("{} cannot be read: {error}", path.display()));
    std::fs::read(path).map_err(unread)
}

fn unusable(path: &Path, error: &TlsError) -> Failure {
    Failure::usage(format!("{}: {error}", path.display()))
}
