// npm's json-rpc-2.0 as in its README. It has no transport of its own, so this uses Node's http.
// Usage: node json_rpc_2_0.mjs PORT

import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { JSONRPCErrorException, JSONRPCServer } from 'json-rpc-2.0';
import { data, subtract, sum } from './service.mjs';

const calculated = (method) => (params) => {
  const result = method(params);
  if (result === undefined) throw new JSONRPCErrorException('Invalid params', -32602);
  return result;
};

const server = new JSONRPCServer();
server.addMethod('subtract', calculated(subtract));
server.addMethod('sum', calculated(sum));
server.addMethod('get_data', () => data);
server.addMethod('echo', (params) => params);
for (const name of ['update', 'notify_hello', 'notify_sum']) server.addMethod(name, () => null);

createServer(async (request, response) => {
  const answer = await server.receiveJSON(await text(request));
  if (answer) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  } else {
    response.writeHead(204).end();
  }
}).listen(Number(process.argv[2]), '127.0.0.1');
