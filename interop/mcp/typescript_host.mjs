// A host on the TypeScript SDK: version 1 for the legacy era of MCP, version 2 for the modern one. Both get the same
// handlers, and what the server asks of them is recorded.

const CLIENT = { name: 'interop-typescript', version: '1.0.0' };
const CAPABILITIES = { sampling: {}, elicitation: { form: {} }, roots: {} };
const VALUES = { string: 'Alice', integer: 3, number: 1.5, boolean: true };

export const ROOT = 'file:///srv/project';
export const WATCHED = 'test://watched-resource';

/** Connects to `endpoint`, a URL or a command with its arguments. */
export async function connect(era, endpoint) {
  const host = { era, asked: [], logged: [], changes: changes() };
  const parts = era === 'legacy' ? await version1(host) : await version2(host);
  const [target, ...args] = endpoint;
  const transport = /^https?:/.test(target)
    ? new parts.Http(new URL(target))
    : new parts.Stdio({ command: target, args, stderr: 'inherit' });
  await parts.client.connect(transport);
  return Object.assign(host, { client: parts.client, call: parts.call, transport });
}

async function version1(host) {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport: Http } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { StdioClientTransport: Stdio } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const types = await import('@modelcontextprotocol/sdk/types.js');
  const client = new Client(CLIENT, { capabilities: CAPABILITIES });
  client.setRequestHandler(types.CreateMessageRequestSchema, ({ params }) => sample(host, params));
  client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => elicit(host, params));
  client.setRequestHandler(types.ListRootsRequestSchema, () => roots(host));
  client.setNotificationHandler(types.LoggingMessageNotificationSchema, ({ params }) => { host.logged.push(params.data); });
  for (const schema of [types.ResourceUpdatedNotificationSchema, types.ToolListChangedNotificationSchema]) {
    client.setNotificationHandler(schema, ({ method }) => host.changes.add(method));
  }
  const call = (name, args = {}, options) => client.callTool({ name, arguments: args }, undefined, options);
  return { client, call, Http, Stdio };
}

async function version2(host) {
  const { Client, StreamableHTTPClientTransport: Http } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport: Stdio } = await import('@modelcontextprotocol/client/stdio');
  const client = new Client(CLIENT, {
    capabilities: CAPABILITIES,
    versionNegotiation: { mode: { pin: '2026-07-28' } },
  });
  client.setRequestHandler('sampling/createMessage', ({ params }) => sample(host, params));
  client.setRequestHandler('elicitation/create', ({ params }) => elicit(host, params));
  client.setRequestHandler('roots/list', () => roots(host));
  client.setNotificationHandler('notifications/message', ({ params }) => { host.logged.push(params.data); });
  for (const kind of ['resources/updated', 'tools/list_changed', 'prompts/list_changed']) {
    const method = `notifications/${kind}`;
    client.setNotificationHandler(method, () => host.changes.add(method));
  }
  const call = (name, args = {}, options = {}) => {
    const { _meta, ...rest } = options;
    return client.callTool({ name, arguments: args, ...(_meta && { _meta }) }, rest);
  };
  return { client, call, Http, Stdio };
}

function sample(host, { messages }) {
  host.asked.push([messages[0].content].flat()[0].text);
  return { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'none', stopReason: 'endTurn' };
}

function elicit(host, { message, requestedSchema }) {
  host.asked.push(message);
  const answer = ([name, schema]) => [name, schema.default ?? VALUES[schema.type]];
  return { action: 'accept', content: Object.fromEntries(Object.entries(requestedSchema.properties).map(answer)) };
}

function roots(host) {
  host.asked.push('roots');
  return { roots: [{ uri: ROOT, name: 'project' }] };
}

/** The notifications of changes, in order, with a promise of the next one. */
function changes() {
  const arrived = [];
  let wake;
  return {
    add(method) { arrived.push(method); wake?.(); },
    async next() {
      while (arrived.length === 0) await new Promise((resolve) => { wake = resolve; });
      return arrived.shift();
    },
  };
}
