//! The methods of the dialects, for completion at the prompt.

use antiphon::RawJson;
use serde_json::Value;

use crate::dialect::DialectName;

/// Returns the methods of a server of this dialect. `initialized` is the result of `initialize`.
pub(super) fn methods(
    dialect: Option<DialectName>,
    initialized: Option<&RawJson>,
) -> Vec<&'static str> {
    let capabilities = initialized.and_then(|result| result.decode::<Value>().ok());
    let capabilities = capabilities.as_ref().and_then(|result| result.get("capabilities"));
    let by_capability = |table: &'static [(&str, &str)]| {
        let has = |path: &str| {
            // Without a handshake, the capabilities are unknown, so all methods are offered.
            capabilities.is_none_or(|known| path.is_empty() || is_declared(known, path))
        };
        table.iter().filter(|(_, path)| has(path)).map(|(method, _)| *method).collect()
    };
    match dialect {
        Some(DialectName::Lsp) => by_capability(LSP),
        Some(DialectName::Mcp) => by_capability(MCP),
        Some(DialectName::Ethereum) => ETHEREUM.to_vec(),
        Some(DialectName::Bitcoin) => BITCOIN.to_vec(),
        Some(DialectName::V1) | None => Vec::new(),
    }
}

fn is_declared(capabilities: &Value, path: &str) -> bool {
    let found = path.split('.').try_fold(capabilities, |value, name| value.get(name));
    found.is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
}

/// The requests and notifications of LSP 3.17 from client to server, and the capability that each needs.
const LSP: &[(&str, &str)] = &[
    ("$/cancelRequest", ""),
    ("$/setTrace", ""),
    ("callHierarchy/incomingCalls", "callHierarchyProvider"),
    ("callHierarchy/outgoingCalls", "callHierarchyProvider"),
    ("codeAction/resolve", "codeActionProvider.resolveProvider"),
    ("codeLens/resolve", "codeLensProvider.resolveProvider"),
    ("completionItem/resolve", "completionProvider.resolveProvider"),
    ("documentLink/resolve", "documentLinkProvider.resolveProvider"),
    ("inlayHint/resolve", "inlayHintProvider.resolveProvider"),
    ("textDocument/codeAction", "codeActionProvider"),
    ("textDocument/codeLens", "codeLensProvider"),
    ("textDocument/colorPresentation", "colorProvider"),
    ("textDocument/completion", "completionProvider"),
    ("textDocument/declaration", "declarationProvider"),
    ("textDocument/definition", "definitionProvider"),
    ("textDocument/diagnostic", "diagnosticProvider"),
    ("textDocument/didChange", ""),
    ("textDocument/didClose", ""),
    ("textDocument/didOpen", ""),
    ("textDocument/didSave", ""),
    ("textDocument/documentColor", "colorProvider"),
    ("textDocument/documentHighlight", "documentHighlightProvider"),
    ("textDocument/documentLink", "documentLinkProvider"),
    ("textDocument/documentSymbol", "documentSymbolProvider"),
    ("textDocument/foldingRange", "foldingRangeProvider"),
    ("textDocument/formatting", "documentFormattingProvider"),
    ("textDocument/hover", "hoverProvider"),
    ("textDocument/implementation", "implementationProvider"),
    ("textDocument/inlayHint", "inlayHintProvider"),
    ("textDocument/inlineValue", "inlineValueProvider"),
    ("textDocument/linkedEditingRange", "linkedEditingRangeProvider"),
    ("textDocument/moniker", "monikerProvider"),
    ("textDocument/onTypeFormatting", "documentOnTypeFormattingProvider"),
    ("textDocument/prepareCallHierarchy", "callHierarchyProvider"),
    ("textDocument/prepareRename", "renameProvider.prepareProvider"),
    ("textDocument/prepareTypeHierarchy", "typeHierarchyProvider"),
    ("textDocument/rangeFormatting", "documentRangeFormattingProvider"),
    ("textDocument/references", "referencesProvider"),
    ("textDocument/rename", "renameProvider"),
    ("textDocument/selectionRange", "selectionRangeProvider"),
    ("textDocument/semanticTokens/full", "semanticTokensProvider.full"),
    ("textDocument/semanticTokens/full/delta", "semanticTokensProvider.full.delta"),
    ("textDocument/semanticTokens/range", "semanticTokensProvider.range"),
    ("textDocument/signatureHelp", "signatureHelpProvider"),
    ("textDocument/typeDefinition", "typeDefinitionProvider"),
    ("textDocument/willSave", ""),
    ("textDocument/willSaveWaitUntil", ""),
    ("typeHierarchy/subtypes", "typeHierarchyProvider"),
    ("typeHierarchy/supertypes", "typeHierarchyProvider"),
    ("window/workDoneProgress/cancel", ""),
    ("workspace/diagnostic", "diagnosticProvider.workspaceDiagnostics"),
    ("workspace/didChangeConfiguration", ""),
    ("workspace/didChangeWatchedFiles", ""),
    ("workspace/didChangeWorkspaceFolders", "workspace.workspaceFolders"),
    ("workspace/didCreateFiles", "workspace.fileOperations.didCreate"),
    ("workspace/didDeleteFiles", "workspace.fileOperations.didDelete"),
    ("workspace/didRenameFiles", "workspace.fileOperations.didRename"),
    ("workspace/executeCommand", "executeCommandProvider"),
    ("workspace/symbol", "workspaceSymbolProvider"),
    ("workspace/willCreateFiles", "workspace.fileOperations.willCreate"),
    ("workspace/willDeleteFiles", "workspace.fileOperations.willDelete"),
    ("workspace/willRenameFiles", "workspace.fileOperations.willRename"),
    ("workspaceSymbol/resolve", "workspaceSymbolProvider.resolveProvider"),
];

/// The requests and notifications of MCP 2025-11-25 from client to server, and the capability that each needs.
const MCP: &[(&str, &str)] = &[
    ("completion/complete", "completions"),
    ("logging/setLevel", "logging"),
    ("notifications/cancelled", ""),
    ("notifications/roots/list_changed", ""),
    ("ping", ""),
    ("prompts/get", "prompts"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/read", "resources"),
    ("resources/subscribe", "resources.subscribe"),
    ("resources/templates/list", "resources"),
    ("resources/unsubscribe", "resources.subscribe"),
    ("tasks/cancel", "tasks.cancel"),
    ("tasks/get", "tasks"),
    ("tasks/list", "tasks.list"),
    ("tasks/result", "tasks"),
    ("tools/call", "tools"),
    ("tools/list", "tools"),
];

/// The methods that Ethereum nodes have in common.
const ETHEREUM: &[&str] = &[
    "debug_traceBlockByNumber",
    "debug_traceCall",
    "debug_traceTransaction",
    "eth_accounts",
    "eth_blobBaseFee",
    "eth_blockNumber",
    "eth_call",
    "eth_chainId",
    "eth_createAccessList",
    "eth_estimateGas",
    "eth_feeHistory",
    "eth_gasPrice",
    "eth_getBalance",
    "eth_getBlockByHash",
    "eth_getBlockByNumber",
    "eth_getBlockReceipts",
    "eth_getBlockTransactionCountByHash",
    "eth_getBlockTransactionCountByNumber",
    "eth_getCode",
    "eth_getFilterChanges",
    "eth_getFilterLogs",
    "eth_getLogs",
    "eth_getProof",
    "eth_getStorageAt",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionByHash",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
    "eth_maxPriorityFeePerGas",
    "eth_newBlockFilter",
    "eth_newFilter",
    "eth_newPendingTransactionFilter",
    "eth_sendRawTransaction",
    "eth_sendTransaction",
    "eth_sign",
    "eth_signTransaction",
    "eth_subscribe",
    "eth_syncing",
    "eth_uninstallFilter",
    "eth_unsubscribe",
    "net_listening",
    "net_peerCount",
    "net_version",
    "rpc_modules",
    "txpool_content",
    "txpool_status",
    "web3_clientVersion",
    "web3_sha3",
];

/// The most common methods of Bitcoin Core.
const BITCOIN: &[&str] = &[
    "createrawtransaction",
    "createwallet",
    "decoderawtransaction",
    "decodescript",
    "estimatesmartfee",
    "generatetoaddress",
    "getaddressinfo",
    "getbalance",
    "getbalances",
    "getbestblockhash",
    "getblock",
    "getblockchaininfo",
    "getblockcount",
    "getblockfilter",
    "getblockhash",
    "getblockheader",
    "getblockstats",
    "getblocktemplate",
    "getchaintips",
    "getconnectioncount",
    "getdifficulty",
    "getindexinfo",
    "getmempoolentry",
    "getmempoolinfo",
    "getmininginfo",
    "getnetworkhashps",
    "getnetworkinfo",
    "getnewaddress",
    "getpeerinfo",
    "getrawmempool",
    "getrawtransaction",
    "getreceivedbyaddress",
    "getrpcinfo",
    "gettransaction",
    "gettxout",
    "gettxoutsetinfo",
    "getwalletinfo",
    "help",
    "listtransactions",
    "listunspent",
    "listwallets",
    "loadwallet",
    "scantxoutset",
    "sendrawtransaction",
    "sendtoaddress",
    "signrawtransactionwithwallet",
    "stop",
    "submitblock",
    "testmempoolaccept",
    "unloadwallet",
    "uptime",
    "validateaddress",
    "verifychain",
    "walletlock",
    "walletpassphrase",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn methods_follow_the_capabilities() {
        let result = RawJson::parse(
            r#"{"capabilities":{"hoverProvider":true,"renameProvider":{"prepareProvider":false},
                "codeLensProvider":null,"definitionProvider":false,"semanticTokensProvider":{"full":{}}}}"#,
        )
        .unwrap();
        let found = methods(Some(DialectName::Lsp), Some(&result));
        for method in ["textDocument/hover", "textDocument/rename", "textDocument/didOpen"] {
            assert!(found.contains(&method), "{method}");
        }
        assert!(found.contains(&"textDocument/semanticTokens/full"));
        for method in [
            "textDocument/prepareRename",
            "textDocument/codeLens",
            "textDocument/definition",
            "textDocument/semanticTokens/full/delta",
        ] {
            assert!(!found.contains(&method), "{method}");
        }
        assert_eq!(methods(Some(DialectName::Lsp), None).len(), LSP.len());
    }

    /// The methods of the handshake, of notebooks and of progress are not offered.
    #[test]
    fn the_methods_of_language_servers_are_those_of_the_protocol() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../antiphon-lsp/meta/methods-3.17.json");
        let model: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let lists = ["requests", "notifications"].map(|list| model[list].as_array().unwrap());
        let to_server = lists.into_iter().flatten().filter(|method| {
            method["messageDirection"] != "serverToClient" && method["proposed"] != true
        });
        let left_out = ["initialize", "initialized", "shutdown", "exit", "$/progress"];
        let expected: BTreeSet<_> = to_server
            .map(|method| method["method"].as_str().unwrap())
            .filter(|name| !left_out.contains(name) && !name.starts_with("notebookDocument/"))
            .collect();
        let offered: BTreeSet<_> = LSP.iter().map(|(name, _)| *name).collect();
        assert_eq!(offered, expected);
    }
}
