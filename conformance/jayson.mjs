// Node's jayson as in its README.
// Usage: node jayson.mjs http|tcp PORT

import jayson from 'jayson';
import { data, subtract, sum } from './service.mjs';

const nothing = (params, reply) => reply(null, null);

// README: an error is the first argument of the callback; `error` creates one from a code.
const calculated = (method) => (params, reply) => {
  const result = method(params);
  if (result === undefined) reply(server.error(-32602));
  else reply(null, result);
};

const server = new jayson.Server({
  subtract: calculated(subtract),
  sum: calculated(sum),
  get_data: (params, reply) => reply(null, data),
  echo: (params, reply) => reply(null, params),
  update: nothing,
  notify_hello: nothing,
  notify_sum: nothing,
});

const [wire, port] = process.argv.slice(2);
server[wire]().listen(Number(port), '127.0.0.1');
