// VS Code's protocol library against the example `typos_server`, over stdio, a pipe and a socket.
// Usage: node vscode.mjs SERVER

import lsp from 'vscode-languageserver-protocol/node';
import { check, run } from '../check.mjs';
import { OpenDocument, failure, start } from './vscode_editor.mjs';

const EDITS = 400;
const PIECES = ['teh ', 'é', ' 日本 ', '𐐀 ', '\n', '\r\n', '👩‍👩‍👧 teh', '', 'x\rteh '];

/** The newest diagnostics from the server, and the kinds of its progress reports. */
function observe(connection) {
  const seen = { versions: new Map(), created: [], reports: [] };
  connection.onNotification(lsp.PublishDiagnosticsNotification.type, ({ version, diagnostics }) => {
    seen.versions.set(version, diagnostics);
    seen.arrived?.();
  });
  connection.onRequest(lsp.WorkDoneProgressCreateRequest.type, ({ token }) => {
    seen.created.push(token);
    connection.onProgress(lsp.WorkDoneProgress.type, token, ({ kind }) => seen.reports.push(kind));
  });
  return seen;
}

/** The ranges of the diagnostics of the newest version, once they are here. */
async function marked(seen, document) {
  while (!seen.versions.has(document.now.version)) {
    await new Promise((arrived) => { seen.arrived = arrived; });
  }
  return seen.versions.get(document.now.version).map(({ range }) => range);
}

async function handshake(connection) {
  const place = { textDocument: { uri: 'file:///a' }, position: { line: 0, character: 0 } };
  const early = await failure(connection.sendRequest(lsp.HoverRequest.type, place));
  check('a request before `initialize`', early.code, lsp.ErrorCodes.ServerNotInitialized);
  const { capabilities } = await connection.sendRequest(lsp.InitializeRequest.type, {
    processId: process.pid,
    rootUri: null,
    workspaceFolders: null,
    capabilities: { general: { positionEncodings: ['utf-16'] }, window: { workDoneProgress: true } },
  });
  check('the unit of positions', capabilities.positionEncoding, 'utf-16');
  check('the kind of changes', capabilities.textDocumentSync.change, lsp.TextDocumentSyncKind.Incremental);
  check('the command', capabilities.executeCommandProvider.commands, ['typos.fixAll']);
  await connection.sendNotification(lsp.InitializedNotification.type, {});
}

async function reads(connection, seen) {
  const document = new OpenDocument(connection, '😀 teh cat\nunt');
  await document.open();
  check('the diagnostics of an opened document', await marked(seen, document), document.places('teh'));
  const textDocument = { uri: document.uri };
  const at = (line, character) => ({ textDocument, position: { line, character } });
  const hover = await connection.sendRequest(lsp.HoverRequest.type, at(0, 4));
  check('hover', hover, { contents: { kind: 'plaintext', value: 'Write `the`' }, range: document.places('teh')[0] });
  check('no hover beside the word', await connection.sendRequest(lsp.HoverRequest.type, at(0, 9)), null);
  const completions = await connection.sendRequest(lsp.CompletionRequest.type, at(1, 3));
  check('completion', completions.map(({ label }) => label), ['until']);
  return document;
}

async function corrects(connection, seen, document) {
  const [range] = document.places('teh');
  const context = { diagnostics: seen.versions.get(document.now.version) };
  const params = { textDocument: { uri: document.uri }, range, context };
  const [action, ...others] = await connection.sendRequest(lsp.CodeActionRequest.type, params);
  check('one code action', [action.title, action.kind, others], ['Write `the`', 'quickfix', []]);
  await document.apply(action.edit.changes[document.uri]);
  check('the code action corrects the text', document.text, '😀 the cat\nunt');
  check('and the diagnostic disappears', await marked(seen, document), []);
}

/** Edits that begin and end at any character, also inside of line ends. */
async function edits(seen, document) {
  for (let step = 1; step <= EDITS; step++) {
    const characters = [...document.text];
    const from = (step * 31) % (characters.length + 1);
    const start = characters.slice(0, from).join('').length;
    const end = start + characters.slice(from, from + (step % 4)).join('').length;
    await document.replace(start, end, PIECES[step % PIECES.length]);
  }
  const expected = document.places('teh');
  check('the edits leave misspelled words', expected.length > 20, true);
  check(`the diagnostics after ${EDITS} edits`, await marked(seen, document), expected);
}

async function fixesAll(connection, seen, document) {
  connection.onRequest(lsp.ApplyWorkspaceEditRequest.type, async ({ edit }) => {
    await document.apply(edit.changes[document.uri]);
    return { applied: true };
  });
  const command = (name) => connection.sendRequest(lsp.ExecuteCommandRequest.type, { command: name });
  check('a command with progress', await command('typos.fixAll'), null);
  check('one token is created', seen.created.length, 1);
  check('the reports precede the response', seen.reports, ['begin', 'report', 'end']);
  check('it corrects the text through the editor', document.places('teh'), []);
  check('and no diagnostic is left', await marked(seen, document), []);
  check('an unknown command', await failure(command('none')), {
    code: lsp.LSPErrorCodes.RequestFailed,
    message: 'unknown command `none`',
  });
  check('an unknown request', (await failure(connection.sendRequest('$/none'))).code, lsp.ErrorCodes.MethodNotFound);
}

async function session(program, channel) {
  console.log(`-- ${channel}`);
  const { connection, exited, complaints } = await start(program, channel);
  const seen = observe(connection);
  await handshake(connection);
  const document = await reads(connection, seen);
  await corrects(connection, seen, document);
  await edits(seen, document);
  await fixesAll(connection, seen, document);
  check('shutdown', await connection.sendRequest(lsp.ShutdownRequest.type), null);
  const late = await failure(connection.sendRequest(lsp.ShutdownRequest.type));
  check('a request after `shutdown`', late.code, lsp.ErrorCodes.InvalidRequest);
  await connection.sendNotification(lsp.ExitNotification.type);
  check('the server exits with 0', await exited, [0, null]);
  check('the library has nothing to complain of', complaints, []);
}

async function unexpectedExit(program) {
  console.log('-- exit without shutdown');
  const { connection, exited } = await start(program, 'stdio');
  await handshake(connection);
  await connection.sendNotification(lsp.ExitNotification.type);
  check('the server exits with 1', await exited, [1, null]);
}

run(async () => {
  const [program] = process.argv.slice(2);
  if (!program) {
    throw new Error('usage: node vscode.mjs SERVER');
  }
  for (const channel of ['stdio', 'pipe', 'socket']) {
    await session(program, channel);
  }
  await unexpectedExit(program);
});
