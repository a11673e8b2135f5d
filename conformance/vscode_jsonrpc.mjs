// VS Code's vscode-jsonrpc on stdio, with its Content-Length headers, as in its README.
// Usage: node vscode_jsonrpc.mjs

import rpc from 'vscode-jsonrpc/node';
import { data, subtract, sum } from './service.mjs';

const connection = rpc.createMessageConnection(process.stdin, process.stdout);

// The library spreads positional params over the arguments, passes named ones as the first, and adds a
// cancel token as the last.
const calculated = (method) => (...args) => {
  const params = args.slice(0, -1);
  const isNamed = params.length === 1 && typeof params[0] === 'object';
  const result = method(isNamed ? params[0] : params);
  return result ?? new rpc.ResponseError(rpc.ErrorCodes.InvalidParams, 'Invalid params');
};

connection.onRequest('subtract', calculated(subtract));
connection.onRequest('sum', calculated(sum));
connection.onRequest('get_data', () => data);
for (const name of ['update', 'notify_hello', 'notify_sum']) {
  connection.onRequest(name, () => null);
  connection.onNotification(name, () => {});
}

connection.listen();
