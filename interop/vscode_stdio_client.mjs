// VS Code's JSON-RPC client on its stdin and stdout, for `antiphon check-client --over stdio`: two
// calls in flight; exits with 0 if both get results.

import rpc from 'vscode-jsonrpc/node';

const { byPosition } = rpc.ParameterStructures;
const quiet = { error() {}, warn() {}, info() {}, log() {} };

const server = rpc.createMessageConnection(process.stdin, process.stdout, quiet);
const gone = new Promise((_, reject) => {
  server.onClose(() => reject(new Error('the server went away')));
});
server.listen();

try {
  const calls = [
    server.sendRequest('subtract', byPosition, 42, 23),
    server.sendRequest('sum', byPosition, 1, 2),
  ];
  await Promise.race([Promise.all(calls), gone]);
  process.exit(0);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
