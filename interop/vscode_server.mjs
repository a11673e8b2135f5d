// A server like a language server: VS Code's JSON-RPC library on stdio with Content-Length headers.
// Usage: antiphon call 'exec+header:node interop/vscode_server.mjs' subtract 42 23

import rpc from 'vscode-jsonrpc/node';

const client = rpc.createMessageConnection(process.stdin, process.stdout);

// The library spreads positional params over the arguments, and adds a cancel token as the last one.
client.onRequest('subtract', (...args) => {
  const [minuend, subtrahend] = args.length > 2 ? args : [args[0].minuend, args[0].subtrahend];
  return minuend - subtrahend;
});
client.onRequest('sum', (...args) => args.slice(0, -1).reduce((total, value) => total + value, 0));
client.onRequest('fail', (...args) => new rpc.ResponseError(...args.slice(0, -1)));
client.onRequest('ask', async () => `hello, ${await client.sendRequest('name')}`);

client.listen();
