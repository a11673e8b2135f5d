// Node's `ws` against `antiphon serve`. Usage: node ws_client.mjs URL   (ws://, wss://, http:// or https://)
// NODE_EXTRA_CA_CERTS=FILE adds a trusted certificate.

import { once } from 'node:events';
import WebSocket from 'ws';
import { check, run } from './check.mjs';

const PIPELINED = 1000;

/** One WebSocket whose messages are read one after the other. */
class Connection {
  #arrived = [];
  #readers = [];

  static async open(url) {
    const connection = new Connection(new WebSocket(url));
    await once(connection.socket, 'open');
    return connection;
  }

  constructor(socket) {
    this.socket = socket;
    this.closed = once(socket, 'close').then(([code]) => code);
    this.closed.then((code) => this.#disappoint(new Error(`closed with ${code} where a message was due`)));
    socket.on('message', (data) => this.#deliver(JSON.parse(data)));
  }

  #disappoint(reason) {
    this.#readers.forEach((reader) => reader.reject(reason));
  }

  #deliver(message) {
    const reader = this.#readers.shift();
    reader ? reader.resolve(message) : this.#arrived.push(message);
  }

  next() {
    return new Promise((resolve, reject) => {
      this.#arrived.length > 0 ? resolve(this.#arrived.shift()) : this.#readers.push({ resolve, reject });
    });
  }

  post(message) {
    this.socket.send(JSON.stringify(message));
  }

  exchange(text) {
    this.socket.send(text);
    return this.next();
  }

  /** Closes with 1000 and tells the code that came back, and what arrived that nobody waited for. */
  async close() {
    this.socket.close(1000);
    return { code: await this.closed, unread: this.#arrived };
  }
}

const request = (id, method, params) => ({ jsonrpc: '2.0', method, params, id });
const notification = (method, params) => ({ jsonrpc: '2.0', method, params });
const result = (id, value) => ({ jsonrpc: '2.0', result: value, id });
const sorted = (responses) => [...responses].sort((a, b) => a.id - b.id);

async function calls(peer) {
  check('a call', await peer.exchange('{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}'), result(1, 19));
  check('a call in a binary frame', await peer.exchange(Buffer.from(JSON.stringify(request(2, 'sum', [1, 2, 4])))), result(2, 7));

  const batch = [request(3, 'sum', [1, 2]), notification('update', [1]), request(4, 'subtract', { minuend: 5, subtrahend: 3 })];
  check('a batch, answered in request order', await peer.exchange(JSON.stringify(batch)), [result(3, 3), result(4, 2)]);

  peer.post(notification('update', [1, 2, 3]));
  peer.post([notification('notify_sum', [1]), notification('no_such_method')]);
  check('notifications are not answered', await peer.exchange(JSON.stringify(request(5, 'echo', ['next']))), result(5, ['next']));

  const broken = await peer.exchange('{"jsonrpc":"2.0","method":');
  check('a parse error', { id: broken.id, code: broken.error?.code }, { id: null, code: -32700 });
  check('a call after the parse error', await peer.exchange(JSON.stringify(request(6, 'sum', [1]))), result(6, 1));

  const long = 'ä€😀'.repeat(20_000);
  check('a message of 180 kB comes back whole', (await peer.exchange(JSON.stringify(request(7, 'echo', [long])))).result?.[0] === long, true);
}

async function control(peer) {
  peer.socket.ping('antiphon');
  const [payload] = await once(peer.socket, 'pong');
  check('a ping is answered with its payload', payload.toString(), 'antiphon');
}

async function pipelining(peer) {
  const ids = Array.from({ length: PIPELINED }, (_, id) => id);
  ids.forEach((id) => peer.post(request(id, 'subtract', [id, 1])));
  const responses = [];
  while (responses.length < PIPELINED) {
    responses.push(await peer.next());
  }
  check(`${PIPELINED} pipelined calls, each answered once`, new Set(responses.map(({ id }) => id)), new Set(ids));
  check('and each with its own result', responses.filter(({ id, result }) => result !== id - 1), []);
}

/** Both calls are pending in both directions at once; ids 0 and 1 are likely to collide with the server's own. */
async function reverseCalls(peer) {
  peer.post(request(0, 'call_me_back', ['name', { of: 'first' }]));
  peer.post(request(1, 'call_me_back', ['name', { of: 'second' }]));
  const asked = [await peer.next(), await peer.next()];
  check('the server calls back', asked.map(({ method, params }) => ({ method, params })), [
    { method: 'name', params: { of: 'first' } },
    { method: 'name', params: { of: 'second' } },
  ]);
  asked.reverse().forEach(({ id, params }) => peer.post(result(id, params?.of)));
  check('each answer reaches its caller', sorted([await peer.next(), await peer.next()]), [result(0, 'first'), result(1, 'second')]);
}

async function invalidUtf8(url) {
  const peer = await Connection.open(url);
  peer.socket.send(Buffer.from([0x22, 0xc3, 0x28, 0x22]), { binary: false });
  check('invalid UTF-8 in a text frame closes with 1007', await peer.closed, 1007);
}

async function twoClients(url) {
  const peers = await Promise.all([Connection.open(url), Connection.open(url)]);
  const answers = await Promise.all(peers.map((peer, nth) => peer.exchange(JSON.stringify(request(1, 'echo', [nth])))));
  check('two clients with the same id each get their own answer', answers, [result(1, [0]), result(1, [1])]);
  const closes = await Promise.all(peers.map((peer) => peer.close()));
  check('both close with 1000', closes.map(({ code }) => code), [1000, 1000]);
}

run(async () => {
  const url = process.argv[2]?.replace(/^http/, 'ws');
  if (!url) {
    throw new Error('usage: node ws_client.mjs URL');
  }
  const peer = await Connection.open(url);
  await calls(peer);
  await control(peer);
  await pipelining(peer);
  await reverseCalls(peer);
  check('closes with 1000, and nothing came unasked', await peer.close(), { code: 1000, unread: [] });
  await invalidUtf8(url);
  await twoClients(url);
});
