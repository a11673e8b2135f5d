// VS Code's protocol library against a server whose notification handlers call the editor.
// Usage: node vscode_order.mjs SERVER   (the example `asking_server`)

import lsp from 'vscode-languageserver-protocol/node';
import { check, run } from '../check.mjs';
import { OpenDocument, failure, start } from './vscode_editor.mjs';

const CHANGES = 2_000;

/** Requests from the server. They get no response until `release` is called. */
function questions(connection) {
  const held = { count: 0 };
  const released = new Promise((resolve) => { held.release = resolve; });
  held.asked = new Promise((resolve) => {
    connection.onRequest(lsp.ConfigurationRequest.type, async () => {
      held.count += 1;
      resolve();
      await released;
      return [];
    });
  });
  return held;
}

async function order(connection, document, held) {
  await document.open();
  await held.asked;
  for (let change = 1; change <= CHANGES; change++) {
    const place = document.text.lastIndexOf('\n', change * 7) + 1;
    await document.replace(place, place, `${change} 😀\n`);
  }
  const place = { textDocument: { uri: document.uri }, position: { line: 0, character: 0 } };
  let isAnswered = false;
  const hover = connection.sendRequest(lsp.HoverRequest.type, place).finally(() => { isAnswered = true; });
  const source = new lsp.CancellationTokenSource();
  const cancelled = failure(connection.sendRequest(lsp.HoverRequest.type, place, source.token));
  source.cancel();
  // Everything before the cancellation has arrived by now.
  check('a cancellation overtakes', (await cancelled).code, lsp.LSPErrorCodes.RequestCancelled);
  check('the rest waits for the first question', [isAnswered, held.count], [false, 1]);
  held.release();
  const { contents } = await hover;
  check(`a hover behind ${CHANGES} changes sees the newest text`, contents.value, document.text);
  check('three handlers have asked', held.count, 3);
}

async function parts(connection, document) {
  await document.change([{ text: 'one\ntwo' }]);
  const received = [];
  connection.onProgress(lsp.WorkDoneProgress.type, 'work', ({ kind, message }) => received.push([kind, message]));
  connection.onProgress(new lsp.ProgressType(), 'part', (locations) => received.push(locations.map(({ range }) => range.start.line)));
  const result = await connection.sendRequest(lsp.ReferencesRequest.type, {
    textDocument: { uri: document.uri },
    position: { line: 0, character: 0 },
    context: { includeDeclaration: true },
    workDoneToken: 'work',
    partialResultToken: 'part',
  });
  check('the parts and the reports precede the response', received, [
    ['begin', undefined],
    [0],
    ['report', 'one'],
    [1],
    ['report', 'two'],
    ['end', undefined],
  ]);
  check('the response is empty', result, null);
}

run(async () => {
  const [program] = process.argv.slice(2);
  if (!program) {
    throw new Error('usage: node vscode_order.mjs SERVER');
  }
  const { connection, exited, complaints } = await start(program, 'stdio');
  const held = questions(connection);
  const capabilities = { workspace: { configuration: true } };
  await connection.sendRequest(lsp.InitializeRequest.type, { processId: process.pid, rootUri: null, capabilities });
  await connection.sendNotification(lsp.InitializedNotification.type, {});
  const document = new OpenDocument(connection, 'start 😀\n');
  await order(connection, document, held);
  await parts(connection, document);
  await connection.sendRequest(lsp.ShutdownRequest.type);
  await connection.sendNotification(lsp.ExitNotification.type);
  check('the server exits with 0', await exited, [0, null]);
  check('the library has nothing to complain of', complaints, []);
});
