"""pytest-lsp against the example `typos_server`, which must respect the capabilities of each editor.

Usage: SERVER=PATH pytest -p no:cacheprovider interop/lsp/test_typos_server.py
"""

import asyncio
import os

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

LIMIT_S = 30
URI = "file:///notes/a.txt"
TEXT = "😀 teh cat\nunt"

# A message that the editor cannot take is an error.
pytestmark = [pytest.mark.asyncio, pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning")]


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=[os.environ["SERVER"], "--stdio"]),
    params=["neovim", "visual_studio_code", "emacs"],
)
async def client(request, lsp_client: LanguageClient):
    capabilities = client_capabilities(request.param)
    params = types.InitializeParams(capabilities=capabilities)
    result = await limited(lsp_client.initialize_session(params))
    offered = capabilities.general.position_encodings if capabilities.general else None
    assert result.capabilities.position_encoding == (offered or ["utf-16"])[0]
    lsp_client.encoding = result.capabilities.position_encoding
    yield
    await limited(lsp_client.shutdown_session())
    assert await limited(lsp_client._server.wait()) == 0


async def limited(future):
    return await asyncio.wait_for(future, LIMIT_S)


async def opened(client: LanguageClient) -> list[types.Diagnostic]:
    """Opens the document, and returns its diagnostics."""
    item = types.TextDocumentItem(URI, "plaintext", 1, TEXT)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    return await published(client)


async def published(client: LanguageClient) -> list[types.Diagnostic]:
    await limited(client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS))
    return client.diagnostics[URI]


def place(client: LanguageClient, before: str, text: str) -> types.Range:
    """The range of a text in the first line, in the units of the session."""
    unit = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[client.encoding]
    start, length = (len(it.encode(client.encoding + "-le" * (unit > 1))) // unit for it in (before, text))
    return types.Range(types.Position(0, start), types.Position(0, start + length))


def document() -> types.TextDocumentIdentifier:
    return types.TextDocumentIdentifier(URI)


async def test_reads(client: LanguageClient):
    teh = place(client, "😀 ", "teh")
    assert [(it.range, it.message) for it in await opened(client)] == [(teh, "Write `the`")]
    hover = types.HoverParams(document(), teh.start)
    result = await limited(client.text_document_hover_async(hover))
    assert (result.contents.value, result.range) == ("Write `the`", teh)
    completion = types.CompletionParams(document(), types.Position(1, 3))
    result = await limited(client.text_document_completion_async(completion))
    assert [item.label for item in result] == ["until"]


async def test_corrects(client: LanguageClient):
    context = types.CodeActionContext(diagnostics=list(await opened(client)))
    teh = place(client, "😀 ", "teh")
    params = types.CodeActionParams(document(), teh, context)
    (action,) = await limited(client.text_document_code_action_async(params))
    assert action.edit.changes == {URI: (types.TextEdit(teh, "the"),)}


async def test_follows_edits(client: LanguageClient):
    await opened(client)
    edits = [("", "😀", "日本 𐐀"), ("日本 𐐀 ", "teh", "é teh")]
    for version, (before, old, new) in enumerate(edits, 2):
        change = types.TextDocumentContentChangePartial(place(client, before, old), new)
        identifier = types.VersionedTextDocumentIdentifier(version, URI)
        client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
        diagnostics = await published(client)
    assert [it.range for it in diagnostics] == [place(client, "日本 𐐀 é ", "teh")]


async def test_shows_progress(client: LanguageClient):
    """The server reports progress only to an editor that announces it."""
    await opened(client)
    edits = []

    @client.feature(types.WORKSPACE_APPLY_EDIT)
    def apply(params: types.ApplyWorkspaceEditParams):
        edits.append(params.edit.changes)
        return types.ApplyWorkspaceEditResult(applied=True)

    params = types.ExecuteCommandParams("typos.fixAll")
    assert await limited(client.workspace_execute_command_async(params)) is None
    assert edits == [{URI: (types.TextEdit(place(client, "😀 ", "teh"), "the"),)}]
    kinds = [report.kind for reports in client.progress_reports.values() for report in reports]
    is_wanted = client.capabilities.window.work_done_progress
    assert kinds == (["begin", "report", "end"] if is_wanted else [])
