// viem and ethers against the toy node of interop/ethereum: reads, batches, errors, subscriptions, and a lost
// connection. Usage: node ethereum_client.mjs HTTP_URL WS_URL IPC_PATH
import { ethers } from 'ethers';
import { createPublicClient, http, webSocket } from 'viem';
import { ipc } from 'viem/node';

import { check, run } from './check.mjs';

const [httpUrl, wsUrl, ipcPath] = process.argv.slice(2);
const ADDRESS = '0x5fbdb2315678afecb367f032d93f642f64180aa3';

/** The items that a callback receives, in order. */
function inbox() {
  const items = [];
  const waiting = [];
  return {
    put: (item) => (waiting.length > 0 ? waiting.shift()(item) : items.push(item)),
    next: () => (items.length > 0 ? items.shift() : new Promise((resolve) => waiting.push(resolve))),
    size: () => items.length,
  };
}

/** One call with fetch, independent of both libraries. */
async function rpc(method, params = []) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const response = await fetch(httpUrl, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  return (await response.json()).result;
}

/** Mines a block. Returns its number. */
const mine = async () => BigInt(await rpc('evm_mine'));

async function viemReads(name, client) {
  check(`viem ${name}: chain id`, await client.getChainId(), 1337);
  const number = await mine();
  check(`viem ${name}: block number`, await client.getBlockNumber({ cacheTime: 0 }), number);
  const block = await client.getBlock({ blockNumber: number });
  check(`viem ${name}: block by number`, [block.number, block.transactions.length], [number, 0]);
  check(`viem ${name}: block by hash`, (await client.getBlock({ blockHash: block.hash })).number, number);
  const logs = await client.getLogs({ address: ADDRESS, fromBlock: number, toBlock: number });
  check(`viem ${name}: logs`, logs.map((log) => [log.blockNumber, log.address]), [[number, ADDRESS]]);
  check(`viem ${name}: no logs of another address`, await client.getLogs({ address: ADDRESS.replace('5f', '60'), fromBlock: number }), []);
  check(`viem ${name}: call`, (await client.call({ to: ADDRESS, data: '0x1234' })).data, '0x1234');
  const reverted = await client.call({ to: ADDRESS }).catch((error) => error);
  check(`viem ${name}: a reverted call has its reason`, /execution reverted|toy/.test(reverted.message ?? ''), true);
  const missing = await client.request({ method: 'eth_toy', params: [] }).catch((error) => error);
  check(`viem ${name}: an unknown method`, [missing.name, missing.code], ['MethodNotFoundRpcError', -32601]);
}

async function viemSubscriptions(name, client) {
  const heads = inbox();
  const logs = inbox();
  const failed = (error) => heads.put(error);
  const unwatch = client.watchBlocks({ onBlock: heads.put, onError: failed });
  const unwatchLogs = client.watchEvent({ address: ADDRESS, onLogs: (all) => all.forEach(logs.put), onError: failed });
  const { unsubscribe } = await client.transport.subscribe({ params: ['newHeads'], onData: () => {}, onError: failed });
  // The subscriptions before are on the same connection, so they are open too.
  const number = await mine();
  check(`viem ${name}: newHeads`, (await heads.next()).number, number);
  check(`viem ${name}: logs`, (await logs.next()).blockNumber, number);
  check(`viem ${name}: unsubscribe`, (await unsubscribe()).result ?? true, true);
  unwatch();
  unwatchLogs();
  await client.getChainId();
  await mine();
  await client.getChainId();
  check(`viem ${name}: silent after unsubscribe`, [heads.size(), logs.size()], [0, 0]);
}

/** The client connects and subscribes again by itself. */
async function viemReconnect() {
  const client = createPublicClient({ transport: webSocket(wsUrl, { reconnect: { delay: 20, attempts: 50 } }) });
  const heads = inbox();
  const unwatch = client.watchBlocks({ onBlock: heads.put, onError: () => {} });
  await client.getChainId();
  const first = await mine();
  check('viem ws: newHeads before the cut', (await heads.next()).number, first);
  check('viem ws: the node cuts a connection', (await rpc('toy_disconnect')) > 0, true);
  // Each try is a new block: it arrives as soon as the client has subscribed again.
  const arrived = heads.next();
  let block;
  for (let tries = 0; tries < 200 && block === undefined; tries++) {
    await mine();
    block = await Promise.race([arrived, new Promise((resolve) => setTimeout(resolve, 50))]);
  }
  check('viem ws: newHeads after the cut', block?.number > first, true);
  check('viem ws: reads after the cut', await client.getChainId(), 1337);
  unwatch();
}

/** viem has no reconnection over IPC. */
async function viemLostIpc(client) {
  await client.transport.subscribe({ params: ['newHeads'], onData: () => {} });
  const { socket } = await client.transport.getRpcClient();
  const closed = new Promise((resolve) => socket.once('close', resolve));
  check('viem ipc: the node cuts connections', (await rpc('toy_disconnect')) > 0, true);
  await closed;
  const lost = await client.getChainId().catch((error) => error);
  check('viem ipc: a call after the cut fails', lost.details, 'Socket is closed.');
}

async function viemBatch() {
  const client = createPublicClient({ transport: http(httpUrl, { batch: true, retryCount: 0 }) });
  const results = await Promise.allSettled([client.getChainId(), client.request({ method: 'eth_toy' }), client.getBlock({ blockTag: 'earliest' })]);
  check('viem http: a batch with an error', results.map((one) => one.status), ['fulfilled', 'rejected', 'fulfilled']);
  const polled = inbox();
  const unwatch = client.watchBlockNumber({ onBlockNumber: polled.put, pollingInterval: 20 });
  await polled.next();
  const number = await mine();
  check('viem http: polls, since subscriptions need a connection', await polled.next(), number);
  unwatch();
}

async function ethersReads(name, provider) {
  check(`ethers ${name}: chain id`, (await provider.getNetwork()).chainId, 1337n);
  const number = Number(await mine());
  const [block, again, logs, data] = await Promise.all([
    provider.getBlock(number),
    provider.send('eth_getBlockByNumber', ['earliest', false]),
    provider.getLogs({ address: ADDRESS, fromBlock: number, toBlock: number }),
    provider.call({ to: ADDRESS, data: '0x1234' }),
  ]);
  check(`ethers ${name}: block`, [block.number, again.number], [number, '0x0']);
  check(`ethers ${name}: logs`, logs.map((log) => log.blockNumber), [number]);
  check(`ethers ${name}: call`, data, '0x1234');
  const reverted = await provider.call({ to: ADDRESS }).catch((error) => error);
  check(`ethers ${name}: a reverted call has its reason`, [reverted.code, reverted.reason], ['CALL_EXCEPTION', 'toy']);
  const missing = await provider.send('eth_toy', []).catch((error) => error);
  check(`ethers ${name}: an unknown method`, [missing.code, missing.info?.error?.code], ['UNSUPPORTED_OPERATION', -32601]);
}

/** Over HTTP, calls that are made together are one batch. */
async function ethersBatch() {
  const provider = new ethers.JsonRpcProvider(httpUrl, 1337, { staticNetwork: true });
  const sent = [];
  await provider.on('debug', ({ action, payload }) => action === 'sendRpcPayload' && sent.push(payload));
  const calls = [provider.send('eth_chainId', []), provider.send('eth_toy', []), provider.send('eth_getBlockByNumber', ['earliest', false])];
  const results = await Promise.allSettled(calls);
  check('ethers http: a batch with an error', results.map((one) => one.status), ['fulfilled', 'rejected', 'fulfilled']);
  check('ethers http: one batch', sent.map((payload) => payload.length), [3]);
}

/** ethers has no reconnection: it reports the end, and a new provider subscribes again. */
async function ethersLost(name, connect, ended) {
  const provider = connect();
  await provider.on('block', () => {});
  await provider.send('eth_chainId', []);
  const end = ended(provider);
  check(`ethers ${name}: the node cuts connections`, (await rpc('toy_disconnect')) > 0, true);
  await end;
  await provider.destroy();
  const again = connect();
  const heads = inbox();
  await again.on('block', heads.put);
  check(`ethers ${name}: reads after the cut`, await again.send('eth_chainId', []), '0x539');
  const number = Number(await mine());
  check(`ethers ${name}: newHeads after the cut`, await heads.next(), number);
  await again.destroy();
}

async function ethersSubscriptions(name, provider) {
  const heads = inbox();
  const logs = inbox();
  await provider.on('block', heads.put);
  await provider.on({ address: ADDRESS }, logs.put);
  // A call behind the subscriptions: they are open when it has its reply.
  await provider.send('eth_chainId', []);
  const number = Number(await mine());
  check(`ethers ${name}: newHeads`, await heads.next(), number);
  check(`ethers ${name}: logs`, (await logs.next()).blockNumber, number);
  await provider.removeAllListeners();
  await provider.send('eth_chainId', []);
  await mine();
  await provider.send('eth_chainId', []);
  check(`ethers ${name}: silent after unsubscribe`, [heads.size(), logs.size()], [0, 0]);
}

run(async () => {
  const onWs = createPublicClient({ transport: webSocket(wsUrl) });
  const onIpc = createPublicClient({ transport: ipc(ipcPath) });
  await viemReads('http', createPublicClient({ transport: http(httpUrl) }));
  await viemBatch();
  for (const [name, client] of [['ws', onWs], ['ipc', onIpc]]) {
    await viemReads(name, client);
    await viemSubscriptions(name, client);
  }
  await viemLostIpc(onIpc);
  await viemReconnect();
  await ethersReads('http', new ethers.JsonRpcProvider(httpUrl));
  await ethersBatch();
  for (const [name, provider] of [['ws', new ethers.WebSocketProvider(wsUrl)], ['ipc', new ethers.IpcSocketProvider(ipcPath)]]) {
    await ethersReads(name, provider);
    await ethersSubscriptions(name, provider);
    await provider.destroy();
  }
  await ethersLost('ws', () => new ethers.WebSocketProvider(wsUrl), (provider) => new Promise((resolve) => provider.websocket.addEventListener('close', resolve)));
  await ethersLost('ipc', () => new ethers.IpcSocketProvider(ipcPath), (provider) => {
    // At the end of the connection, ethers emits an event that it rejects itself: unknown ProviderEvent "close".
    provider.emit = async () => false;
    // It may still write, for example a call for the newest block, and has no listener for the error.
    provider.socket.on('error', () => {});
    return new Promise((resolve) => provider.socket.once('close', resolve));
  });
});
