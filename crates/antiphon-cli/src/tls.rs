//! The TLS flags: the certificates that a client trusts and the certificate of a server.

use std::path::{Path, PathBuf};

use antiphon::transport::tls::{SelfSigned, TlsClient, TlsError, TlsServer};
use antiphon::{Endpoint, ErrorChain};
use antiphon_check::raw::TlsOptions;
use clap::Args;

use crate::exit::CommandError;
use crate::output;

/// The TLS flags of a client.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ClientTls {
    /// Trust the certificates in this PEM file too: CA certificates, or a self-signed one
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    cacert: Option<PathBuf>,
    /// Send this client certificate (PEM) if the server requests one
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    cert: Option<PathBuf>,
    /// Private key of --cert (PEM) [default: the file of --cert]
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires = "cert")]
    key: Option<PathBuf>,
    /// Skip certificate verification; an attacker on the network can then read and change all data
    #[arg(short = 'k', long, help_heading = "TLS", conflicts_with = "cacert")]
    insecure: bool,
}

impl ClientTls {
    /// Returns the TLS settings for connections to these endpoints.
    pub(crate) fn client<'a>(
        &self,
        endpoints: impl IntoIterator<Item = &'a Endpoint>,
    ) -> Result<TlsClient, CommandError> {
        self.applies_to(endpoints)?;
        let mut tls = TlsClient::new();
        if let Some(path) = &self.cacert {
            tls = tls.extra_roots(read(path)?).map_err(|error| unusable(path, &error))?;
        }
        if let Some(path) = &self.cert {
            let key = read(self.key.as_ref().unwrap_or(path))?;
            let with_certificate = tls.client_certificate(read(path)?, key);
            tls = with_certificate.map_err(|error| unusable(path, &error))?;
        }
        Ok(if self.insecure { tls.dangerously_accept_any_certificate() } else { tls })
    }

    /// Like `client`, for `check` and `bench`, which do not use the library.
    pub(crate) fn raw<'a>(
        &self,
        endpoints: impl IntoIterator<Item = &'a Endpoint>,
    ) -> Result<TlsOptions, CommandError> {
        self.applies_to(endpoints)?;
        let unusable = |path: &Path, reason: String| {
            CommandError::usage(format!("{}: {reason}", path.display()))
        };
        let mut tls = TlsOptions::default();
        if let Some(path) = &self.cacert {
            tls = tls.extra_roots(&read(path)?).map_err(|reason| unusable(path, reason))?;
        }
        if let Some(path) = &self.cert {
            let key = read(self.key.as_ref().unwrap_or(path))?;
            let tls_with = tls.client_certificate(&read(path)?, &key);
            tls = tls_with.map_err(|reason| unusable(path, reason))?;
        }
        Ok(if self.insecure { tls.accept_any_certificate() } else { tls })
    }

    fn applies_to<'a>(
        &self,
        endpoints: impl IntoIterator<Item = &'a Endpoint>,
    ) -> Result<(), CommandError> {
        let has_flags = self.insecure || self.cacert.is_some() || self.cert.is_some();
        if has_flags && !endpoints.into_iter().any(Endpoint::is_secure) {
            return Err(CommandError::usage("--cacert, --cert and -k require a TLS endpoint")
                .hint("use https://, wss:// or tls://"));
        }
        Ok(())
    }

    /// Adds a hint about these flags to a TLS failure.
    pub(crate) fn advise(&self, failure: CommandError) -> CommandError {
        let trust = "--cacert FILE trusts a certificate or its CA; -k skips verification";
        failure
            .hint_where("trust its authority", trust)
            .hint_where("is for another name", "-k skips verification")
            .hint_where("requires a client certificate", "--cert FILE --key FILE sends one")
    }
}

/// The TLS flags of a server.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerTls {
    /// Use this certificate chain (PEM): the server certificate first, then intermediates
    #[arg(long, value_name = "FILE", help_heading = "TLS", conflicts_with = "tls_self_signed")]
    tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert (PEM) [default: the file of --tls-cert]
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Require a client certificate issued by a CA in this PEM file
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    tls_client_ca: Option<PathBuf>,
    /// Generate a self-signed certificate for tests, and write it to FILE (PEM) for clients to trust
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    #[arg(num_args = 0..=1, require_equals = true)]
    tls_self_signed: Option<Option<PathBuf>>,
}

/// The certificate of a server.
pub(crate) struct ServerCertificate {
    pub(crate) tls: TlsServer,
    /// The generated certificate and the file to write it to, with `--tls-self-signed`.
    generated: Option<(SelfSigned, Option<PathBuf>)>,
}

impl ServerTls {
    /// Returns the certificate for a server on these endpoints. `names` are additional host names.
    pub(crate) fn server(
        &self,
        endpoints: &[Endpoint],
        names: &[String],
    ) -> Result<Option<ServerCertificate>, CommandError> {
        let has_flags = self.tls_cert.is_some()
            || self.tls_self_signed.is_some()
            || self.tls_client_ca.is_some();
        let Some(secure) = endpoints.iter().find(|endpoint| endpoint.is_secure()) else {
            let unused = CommandError::usage("the --tls-* flags require a TLS endpoint");
            return if has_flags {
                Err(unused.hint("use https://, wss:// or tls://"))
            } else {
                Ok(None)
            };
        };
        let mut certificate = match (&self.tls_cert, &self.tls_self_signed) {
            (Some(path), _) => {
                ServerCertificate { tls: self.read_certificate(path)?, generated: None }
            }
            (None, Some(file)) => ServerCertificate::generate(file.clone(), endpoints, names)?,
            (None, None) => {
                return Err(CommandError::usage(format!("{secure} requires a certificate")).hint(
                    "use --tls-cert FILE --tls-key FILE, or --tls-self-signed to generate one",
                ));
            }
        };
        if let Some(path) = &self.tls_client_ca {
            let tls = certificate.tls.require_client_certificates(read(path)?);
            certificate.tls = tls.map_err(|error| unusable(path, &error))?;
        }
        Ok(Some(certificate))
    }

    fn read_certificate(&self, path: &Path) -> Result<TlsServer, CommandError> {
        let key = read(self.tls_key.as_deref().unwrap_or(path))?;
        TlsServer::from_pem(read(path)?, key).map_err(|error| unusable(path, &error))
    }
}

impl ServerCertificate {
    /// Generates a certificate for localhost and for the hosts of the endpoints.
    fn generate(
        file: Option<PathBuf>,
        endpoints: &[Endpoint],
        names: &[String],
    ) -> Result<Self, CommandError> {
        let mut all = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        all.extend(endpoints.iter().filter_map(host).chain(names.iter().cloned()));
        all.sort();
        all.dedup();
        let failed = |error: TlsError| {
            CommandError::usage(format!("cannot generate a certificate: {error}"))
        };
        let generated = SelfSigned::new(all).map_err(failed)?;
        let tls = generated.server().map_err(failed)?;
        Ok(Self { tls, generated: Some((generated, file)) })
    }

    /// Writes the generated certificate to its file. Call this after binding: a second server that
    /// cannot bind must not overwrite the certificate of the first.
    pub(crate) fn write(&self) -> Result<(), CommandError> {
        let Some((generated, Some(path))) = &self.generated else { return Ok(()) };
        std::fs::write(path, generated.certificate_pem()).map_err(|error| {
            CommandError::usage(format!("cannot write {}: {error}", path.display()))
        })
    }

    /// Prints the generated certificate and returns the flag that makes curl and `antiphon` accept it.
    pub(crate) fn announce(&self) -> String {
        let Some((generated, file)) = &self.generated else { return String::new() };
        output::note(&format!("self-signed certificate: SHA-256 {}", generated.fingerprint()));
        match file {
            Some(file) => format!(" --cacert {}", file.display()),
            None => {
                output::note(
                    "to let clients verify it: --tls-self-signed=FILE, and --cacert FILE there",
                );
                " -k".to_owned()
            }
        }
    }
}

/// Returns the host of an endpoint, unless it is a wildcard address.
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

fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    std::fs::read(path).map_err(|error| CommandError::cannot_read(path, &error))
}

fn unusable(path: &Path, error: &TlsError) -> CommandError {
    CommandError::usage(format!("{}: {}", path.display(), ErrorChain(error)))
}
