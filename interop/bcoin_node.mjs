// bcoin as a server, for calls by antiphon: an in-memory regtest node without connections to other nodes.
// Usage: node bcoin_node.mjs PORT PASSWORD    (0 picks a free port; prints `listening PORT`)

import { createRequire } from 'node:module';

// Native addons are not built, because interop/setup runs no install scripts. An in-memory node does not open LevelDB.
process.env.NODE_BACKEND = 'js';
const require = createRequire(import.meta.url);
require.cache[require.resolve('leveldown')] = { exports: class {}, loaded: true };
const { FullNode } = require('bcoin');

const [port, password] = process.argv.slice(2);
if (!/^\d+$/.test(port) || !password) {
  console.error('usage: node bcoin_node.mjs PORT PASSWORD');
  process.exit(2);
}
const node = new FullNode({
  config: false,
  network: 'regtest',
  memory: true,
  workers: false,
  listen: false,
  httpHost: '127.0.0.1',
  httpPort: Number(port),
  apiKey: password,
});
// Errors of calls are part of the tests.
node.on('error', () => {});
await node.open();
console.log(`listening ${node.http.http.address().port}`);
