// Node's `jayson` as a server, for calls by antiphon.
// Usage: node jayson_server.mjs http|tcp PORT             (0 picks a free port; prints `listening PORT`)
//        node jayson_server.mjs https|tls PORT CERT KEY   (files in PEM)
//
// Over TCP it writes responses without newlines between them.

import { readFileSync } from 'node:fs';
import jayson from 'jayson';

// A method that throws ends the whole process, so these do not throw.
const methods = {
  subtract(params, reply) {
    const [minuend, subtrahend] = Array.isArray(params) ? params : [params?.minuend, params?.subtrahend];
    reply(null, minuend - subtrahend);
  },
  sum(params, reply) {
    reply(null, Object.values(params ?? []).reduce((total, value) => total + value, 0));
  },
  fail(params, reply) {
    const [code, message, data] = Object.values(params ?? []);
    reply({ code, message, data });
  },
  echo(params, reply) {
    reply(null, params);
  },
};

const [kind, port, cert, key] = process.argv.slice(2);
const isSecure = ['https', 'tls'].includes(kind);
if (!(isSecure ? key : ['http', 'tcp'].includes(kind)) || !/^\d+$/.test(port)) {
  console.error('usage: node jayson_server.mjs http|tcp PORT, or https|tls PORT CERT KEY');
  process.exit(2);
}
const options = isSecure ? { cert: readFileSync(cert), key: readFileSync(key) } : undefined;
const listener = new jayson.Server(methods)[kind](options);
listener.listen(Number(port), '127.0.0.1', () => console.log(`listening ${listener.address().port}`));
