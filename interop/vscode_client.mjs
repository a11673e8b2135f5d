// VS Code's JSON-RPC client against a server on stdio with Content-Length headers.
// Usage: node vscode_client.mjs COMMAND ARGS...   (such as: antiphon serve stdio+header:)

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import rpc from 'vscode-jsonrpc/node';
import { check, run } from './check.mjs';

const CONCURRENT = 200;
const CANCELLED = -32800;

const { byPosition } = rpc.ParameterStructures;

/** The error a call ends in, without what the library adds to it. */
async function failure(call) {
  return call.then(
    (value) => ({ result: value }),
    ({ code, message, data }) => ({ code, message, data }),
  );
}

async function calls(server) {
  check('a request by position', await server.sendRequest('subtract', byPosition, 42, 23), 19);
  check('a request by name', await server.sendRequest('subtract', { subtrahend: 23, minuend: 42 }), 19);
  check('a request without params', await server.sendRequest('echo'), null);
  check('text outside ASCII, where a length in bytes is not one in characters', await server.sendRequest('echo', 'ä€😀'), ['ä€😀']);

  await server.sendNotification('update', byPosition, 1, 2, 3);
  await server.sendNotification('no_such_method');
  check('a request after notifications', await server.sendRequest('sum', byPosition, 1, 2, 4), 7);
}

async function errors(server) {
  check('an error of the method', await failure(server.sendRequest('fail', byPosition, -32050, 'out of tea', { cups: 0 })), {
    code: -32050,
    message: 'out of tea',
    data: { cups: 0 },
  });
  check('an unknown method', (await failure(server.sendRequest('no_such_method'))).code, -32601);
  check('wrong params', (await failure(server.sendRequest('subtract', byPosition, 'a', 'b'))).code, -32602);
}

async function reverseCalls(server) {
  server.onRequest('name', ({ of }) => `the name of ${of}`);
  server.onRequest('nested', () => server.sendRequest('sum', byPosition, 1, 2));
  check('the server calls back', await server.sendRequest('call_me_back', byPosition, 'name', { of: 'the rose' }), 'the name of the rose');
  check('a call from inside the handler of a call', await server.sendRequest('call_me_back', byPosition, 'nested', []), 3);
  const unknown = await failure(server.sendRequest('call_me_back', byPosition, 'no_such_method', []));
  check('a call back that fails is an error', typeof unknown.code, 'number');
}

async function concurrency(server) {
  const ids = Array.from({ length: CONCURRENT }, (_, id) => id);
  const answers = await Promise.all(ids.map((id) => server.sendRequest('subtract', byPosition, id, 1)));
  check(`${CONCURRENT} concurrent requests`, answers, ids.map((id) => id - 1));
}

/** Whether `$/cancelRequest` is heeded is the server's choice; to stay silent, or to break, is not. */
async function cancellation(server) {
  const source = new rpc.CancellationTokenSource();
  const call = failure(server.sendRequest('sleep', byPosition, 300, source.token));
  source.cancel();
  const { result, code } = await call;
  check('a cancelled request is answered', result === 300 || code === CANCELLED, true);
  check('a request after the cancelled one', await server.sendRequest('sum', byPosition, 1, 2), 3);
}

async function endOfInput(server, child) {
  const exited = once(child, 'exit');
  const last = server.sendRequest('sleep', byPosition, 100);
  await server.sendNotification('update'); // Resolves once it is written, and so the request before it.
  server.end();
  check('what was accepted before the end of input is answered', await last, 100);
  check('the server then exits with 0', await exited, [0, null]);
}

run(async () => {
  const [command, ...args] = process.argv.slice(2);
  if (!command) {
    throw new Error('usage: node vscode_client.mjs COMMAND ARGS...');
  }
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  process.on('exit', () => child.kill());

  // The library reports here messages that match no call, such as a response to a notification.
  const complaints = [];
  const complain = (complaint) => complaints.push(complaint);
  const logger = { error: complain, warn: complain, info() {}, log() {} };
  const server = rpc.createMessageConnection(child.stdout, child.stdin, logger);
  server.onError(([error]) => complain(error.message));
  server.listen();

  await calls(server);
  await errors(server);
  await reverseCalls(server);
  await concurrency(server);
  await cancellation(server);
  await endOfInput(server, child);
  check('the library has nothing to complain of', complaints, []);
});
