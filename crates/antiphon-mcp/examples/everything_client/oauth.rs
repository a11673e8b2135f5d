//! The OAuth client of the `auth/` scenarios. The mock of the authorization server asks no user.

use antiphon_mcp::auth::client::{
    ClientAuthentication, EnterpriseManaged, Grant, HeadlessRedirect, OAuthClient,
    PreRegisteredClient,
};
use antiphon_mcp::auth::{JwsAlgorithm, Secret, SigningKey};

use super::Failure;
use super::scenario::Scenario;

/// Nothing listens here.
const REDIRECT: &str = "http://localhost:3000/callback";
/// The client id that the suite expects where the authorization server takes a URL as one.
const METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";

/// Creates the OAuth client of a scenario.
pub(crate) fn client(scenario: &Scenario) -> Result<OAuthClient, Failure> {
    let mut builder = OAuthClient::builder(&scenario.url, grant(scenario)?)
        .client_name("everything_client")
        .client_metadata_url(METADATA_URL)
        .proof_of_possession(scenario.name.starts_with("auth/dpop"));
    if let Some(id) = scenario.text("client_id") {
        builder = builder.pre_registered(registered(scenario, id)?);
    }
    Ok(builder.build()?)
}

fn grant(scenario: &Scenario) -> Result<Grant, Failure> {
    Ok(match &*scenario.name {
        "auth/client-credentials-jwt" | "auth/client-credentials-basic" => Grant::ClientCredentials,
        "auth/wif-jwt-bearer" => Grant::assertion(Secret::new(scenario.required("valid_jwt")?)),
        "auth/enterprise-managed-authorization" => {
            Grant::EnterpriseManaged(EnterpriseManaged::new(
                scenario.required("idp_token_endpoint")?,
                scenario.required("idp_client_id")?,
                Secret::new(scenario.required("idp_id_token")?),
            ))
        }
        _ => Grant::authorization_code(HeadlessRedirect::new(REDIRECT)),
    })
}

/// The client that an operator has registered, from the context.
fn registered(scenario: &Scenario, id: &str) -> Result<PreRegisteredClient, Failure> {
    let mut client = PreRegisteredClient::new(id);
    if let Some(secret) = scenario.text("client_secret") {
        client = client.secret(Secret::new(secret));
    }
    if let Some(pem) = scenario.text("private_key_pem") {
        let key = SigningKey::from_pem(JwsAlgorithm::ES256, pem)?;
        client = client.authentication(ClientAuthentication::PrivateKeyJwt(key));
    }
    Ok(client)
}
