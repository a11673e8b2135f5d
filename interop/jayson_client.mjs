// jayson's client, for `antiphon check-client`: two concurrent calls; exits with 0 if both get results.
// Usage: node jayson_client.mjs http://127.0.0.1:PORT | tcp://127.0.0.1:PORT | ws://127.0.0.1:PORT

import jayson from 'jayson';

const endpoint = new URL(process.argv[2]);
const { hostname, port } = endpoint;

async function connect() {
  switch (endpoint.protocol) {
    case 'http:':
      return jayson.Client.http({ hostname, port });
    case 'tcp:':
      return jayson.Client.tcp({ hostname, port });
    default: {
      const client = jayson.Client.websocket({ url: endpoint.href });
      await new Promise((resolve, reject) => client.ws.once('open', resolve).once('error', reject));
      return client;
    }
  }
}

const client = await connect();

/** Whatever the callback gets: an error of the wire, an Error object, or a result. */
function outcome(resolve, reject) {
  return (failure, error, result) => {
    if (failure || error) {
      reject(failure || new Error(error.message));
    } else {
      resolve(result);
    }
  };
}

function call(method, ...params) {
  return new Promise((resolve, reject) => client.request(method, params, outcome(resolve, reject)));
}

try {
  await Promise.all([call('subtract', 42, 23), call('sum', 1, 2)]);
  process.exit(0);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
