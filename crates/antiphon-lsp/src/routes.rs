//! The router of a contract: one line per method in the generated code.

/// Registers methods of a contract: `method "textDocument/hover" hover (params);`.
macro_rules! routes {
    ($server:ident => $($kind:ident $name:literal $method:ident $params:tt;)*) => {
        ::antiphon::Router::new()$(.$kind($name, {
            let server = $server.clone();
            move |params, cx: ::antiphon::Context| {
                let server = server.clone();
                async move { crate::routes::call!(server, $method, params, cx, $params) }
            }
        }))*
    };
}

/// Calls a method with its params. `()` stands for a method without params.
macro_rules! call {
    ($server:ident, $method:ident, $params:ident, $cx:ident, ()) => {{
        let () = $params;
        $server.$method($cx).await
    }};
    ($server:ident, $method:ident, $params:ident, $cx:ident, (params)) => {
        $server.$method($params, $cx).await
    };
}

pub(crate) use {call, routes};
