//! An authorization server that asks nobody.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use antiphon::http::{Request, Response, StatusCode};
use antiphon_mcp::auth::SigningKey;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use bytes::Bytes;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::http::{HttpServer, empty_response, json_response, redirect, serve};
use super::keys::{jwks, now, signing_key};

pub(crate) type Form = HashMap<String, String>;

/// An authorization server that asks nobody, and records what it is asked.
pub(crate) struct AuthorizationServer {
    pub(crate) issuer: String,
    state: Arc<Mutex<State>>,
    _http: HttpServer,
}

/// How the server behaves, and what has happened so far.
pub(crate) struct State {
    issuer: String,
    pub(crate) key: SigningKey,
    /// Changes of the metadata. `null` removes a member.
    pub(crate) metadata: Value,
    /// The `iss` of authorization responses; `None` leaves it out.
    pub(crate) response_issuer: Option<String>,
    /// Replaces the state of authorization responses.
    pub(crate) response_state: Option<String>,
    pub(crate) expires_in: u64,
    /// Answers the next token request with this error.
    pub(crate) next_error: Option<&'static str>,
    /// The requests, by path.
    pub(crate) requests: Vec<(String, Form)>,
    /// The authorization requests behind codes.
    codes: HashMap<String, Form>,
    /// The scopes behind refresh tokens.
    refresh_tokens: HashMap<String, Form>,
    next: usize,
}

impl AuthorizationServer {
    pub(crate) async fn start() -> Self {
        let state = Arc::new(Mutex::new(State {
            issuer: String::new(),
            key: signing_key("1"),
            metadata: json!({}),
            response_issuer: None,
            response_state: None,
            expires_in: 3600,
            next_error: None,
            requests: Vec::new(),
            codes: HashMap::new(),
            refresh_tokens: HashMap::new(),
            next: 0,
        }));
        let shared = state.clone();
        let http = serve(move |request| shared.lock().unwrap().respond(&request)).await;
        state.lock().unwrap().issuer.clone_from(&http.url);
        state.lock().unwrap().response_issuer = Some(http.url.clone());
        Self { issuer: http.url.clone(), state, _http: http }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Returns the requests for a path.
    pub(crate) fn requests(&self, path: &str) -> Vec<Form> {
        let state = self.state();
        let requests = state.requests.iter().filter(|(at, _)| at == path);
        requests.map(|(_, form)| form.clone()).collect()
    }
}

impl State {
    pub(crate) fn forget_refresh_tokens(&mut self) {
        self.refresh_tokens.clear();
    }

    fn respond(&mut self, request: &Request<Bytes>) -> Response<Bytes> {
        let path = request.uri().path().to_owned();
        let mut form = pairs(request.uri().query().unwrap_or_default().as_bytes());
        if path == "/register" {
            form.insert("body".to_owned(), String::from_utf8_lossy(request.body()).into_owned());
        } else {
            form.extend(pairs(request.body()));
        }
        self.requests.push((path.clone(), form.clone()));
        match &*path {
            "/.well-known/oauth-authorization-server" => {
                json_response(StatusCode::OK, &self.metadata())
            }
            "/jwks" => json_response(StatusCode::OK, &jwks(&[&self.key])),
            "/authorize" => self.authorize(form),
            "/register" => self.register(),
            "/token" => {
                let has_proof = request.headers().contains_key("dpop");
                self.token(&form, if has_proof { "DPoP" } else { "bearer" })
            }
            _ => empty_response(StatusCode::NOT_FOUND),
        }
    }

    fn metadata(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.issuer);
        let mut metadata = json!({
            "issuer": self.issuer,
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "registration_endpoint": at("/register"),
            "jwks_uri": at("/jwks"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": true,
            "scopes_supported": ["files:read", "files:write", "offline_access"],
        });
        let members = metadata.as_object_mut().unwrap();
        members.extend(self.metadata.as_object().unwrap().clone());
        members.retain(|_, value| !value.is_null());
        metadata
    }

    fn number(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    fn register(&mut self) -> Response<Bytes> {
        let id = format!("client-{}", self.number());
        json_response(StatusCode::CREATED, &json!({ "client_id": id }))
    }

    fn authorize(&mut self, form: Form) -> Response<Bytes> {
        let code = format!("code-{}", self.number());
        let state = self.response_state.clone().unwrap_or_else(|| form["state"].clone());
        let mut target = format!("{}?code={code}&state={state}", form["redirect_uri"]);
        if let Some(issuer) = &self.response_issuer {
            target = format!("{target}&iss={issuer}");
        }
        self.codes.insert(code, form);
        redirect(&target)
    }

    fn token(&mut self, form: &Form, token_type: &str) -> Response<Bytes> {
        let refused =
            |error: &str| json_response(StatusCode::BAD_REQUEST, &json!({ "error": error }));
        if let Some(error) = self.next_error.take() {
            return refused(error);
        }
        let granted = match &*form["grant_type"] {
            "authorization_code" => self.codes.remove(&form["code"]).filter(|asked| {
                asked["code_challenge"] == challenge(&form["code_verifier"])
                    && asked["redirect_uri"] == form["redirect_uri"]
                    && asked["resource"] == form["resource"]
                    && asked["client_id"] == form["client_id"]
            }),
            // A refresh token is used once.
            "refresh_token" => self.refresh_tokens.remove(&form["refresh_token"]),
            "client_credentials" => Some(form.clone()),
            _ => return refused("unsupported_grant_type"),
        };
        let Some(granted) = granted else { return refused("invalid_grant") };
        json_response(StatusCode::OK, &self.issue(granted, token_type))
    }

    fn issue(&mut self, granted: Form, token_type: &str) -> Value {
        let number = self.number();
        let token = self.key.sign(&json!({
            "iss": self.issuer,
            "aud": granted["resource"],
            "sub": "ada",
            "exp": now() + self.expires_in,
            "jti": number.to_string(),
            "scope": granted.get("scope").cloned().unwrap_or_default(),
        }));
        let refresh_token = format!("refresh-{number}");
        self.refresh_tokens.insert(refresh_token.clone(), granted);
        json!({
            "access_token": token.unwrap(),
            "token_type": token_type,
            "expires_in": self.expires_in,
            "refresh_token": refresh_token,
        })
    }
}

fn pairs(text: &[u8]) -> Form {
    url::form_urlencoded::parse(text).into_owned().collect()
}

fn challenge(verifier: &str) -> String {
    BASE64.encode(digest(&SHA256, verifier.as_bytes()))
}
