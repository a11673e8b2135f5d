// Node's jayson as in its README: HTTP, and TCP with lines.

import jayson from 'jayson';

const server = new jayson.Server({
  say_hello: (params, reply) => reply(null, 'hello'),
  add: ([a, b], reply) => reply(null, a + b),
  echo: (params, reply) => reply(null, params),
  sleep: ([ms], reply) => setTimeout(reply, ms, null, ms),
});

const listen = (listener) =>
  new Promise((ready) => listener.listen(0, '127.0.0.1', () => ready(listener.address().port)));

const http = await listen(server.http());
const tcp = await listen(server.tcp());
console.log(JSON.stringify({ http: `http://127.0.0.1:${http}`, tcp: `tcp+line://127.0.0.1:${tcp}` }));
