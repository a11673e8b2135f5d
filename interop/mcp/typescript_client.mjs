// The TypeScript SDK against the example `everything_server`: version 1 in the legacy era, version 2 in the modern one.
// Usage: node typescript_client.mjs legacy|modern URL
//        node typescript_client.mjs legacy|modern COMMAND ARGS...

import { check, run } from '../check.mjs';
import { ROOT, WATCHED, connect } from './typescript_host.mjs';

const INVALID_PARAMS = -32602;
const RESOURCE_NOT_FOUND = -32002;

/** The first text of a tool's result. */
async function text(host, ...call) {
  return (await host.call(...call)).content[0].text;
}

/** The code of an error response, or null for a result. */
function code(promise) {
  return promise.then(() => null, (error) => error.code ?? error.message);
}

async function identity(host) {
  const { client } = host;
  const offered = client.getServerCapabilities();
  check('capabilities', ['tools', 'resources', 'prompts', 'completions'].filter((kind) => !offered[kind]), []);
  check('the server names itself', Boolean(client.getServerVersion()?.name), true);
  if (host.era === 'legacy') {
    check('ping', await client.ping(), {});
  } else {
    check('the negotiated version', client.getNegotiatedProtocolVersion(), '2026-07-28');
    check('discover', (await client.discover()).supportedVersions.includes('2026-07-28'), true);
  }
}

async function tools(host) {
  const { tools: listed } = await host.client.listTools();
  check('the first tool', listed[0].name, 'test_simple_text');
  check('each tool has a description', listed.filter(({ description }) => !description), []);
  check('text', await text(host, 'test_simple_text'), 'This is a simple text response for testing.');
  const [image] = (await host.call('test_image_content')).content;
  check('an image', [image.type, image.mimeType, image.data.slice(0, 8)], ['image', 'image/png', 'iVBORw0K']);
  const [audio] = (await host.call('test_audio_content')).content;
  check('audio', [audio.type, audio.mimeType], ['audio', 'audio/wav']);
  const mixed = (await host.call('test_multiple_content_types')).content;
  check('mixed content', mixed.map(({ type }) => type), ['text', 'image', 'resource']);
  check('an embedded resource', mixed[2].resource.text, '{"test":"data","value":123}');
  const { structuredContent } = await host.call('test_structured_content', { a: 2, b: 40 });
  check('structured content', structuredContent, { sum: 42 });
}

async function toolErrors(host) {
  const { isError, content: [{ text: reason }] } = await host.call('test_error_handling');
  check('a tool that fails', [isError, reason], [true, 'This tool intentionally returns an error for testing']);
  check('an unknown tool', await code(host.call('no_such_tool')), INVALID_PARAMS);
  const refused = await host.call('test_structured_content', { a: 'two' }).then(({ isError }) => isError, ({ code }) => code);
  check('wrong arguments', [true, INVALID_PARAMS].includes(refused), true);
}

async function resources(host) {
  const { client } = host;
  const { resources: listed } = await client.listResources();
  const uris = listed.map(({ uri }) => uri);
  check('resources', ['test://static-text', 'test://static-binary', WATCHED].filter((uri) => !uris.includes(uri)), []);
  const read = async (uri) => (await client.readResource({ uri })).contents[0];
  check('a text', (await read('test://static-text')).text, 'This is the content of the static text resource.');
  check('a blob', (await read('test://static-binary')).blob.slice(0, 8), 'iVBORw0K');
  const { resourceTemplates } = await client.listResourceTemplates();
  check('a template', resourceTemplates.map(({ uriTemplate }) => uriTemplate).includes('test://template/{id}/data'), true);
  check('a filled template', JSON.parse((await read('test://template/123/data')).text).id, '123');
  const missing = await code(read('test://none'));
  check('an unknown resource', [INVALID_PARAMS, host.era === 'legacy' && RESOURCE_NOT_FOUND].includes(missing), true);
}

async function subscription(host) {
  const updated = 'notifications/resources/updated';
  if (host.era === 'legacy') {
    await host.client.subscribeResource({ uri: WATCHED });
    await host.call('test_trigger_resource_change');
    check('an update of a subscribed resource', await host.changes.next(), updated);
    await host.client.unsubscribeResource({ uri: WATCHED });
    return;
  }
  const stream = await host.client.listen({ toolsListChanged: true, resourceSubscriptions: [WATCHED] });
  await host.call('test_trigger_resource_change');
  check('an update of a subscribed resource', await host.changes.next(), updated);
  await host.call('test_trigger_prompt_change');
  await host.call('test_trigger_tool_change');
  check('only changes of the filter', await host.changes.next(), 'notifications/tools/list_changed');
  await stream.close();
}

async function prompts(host) {
  const { client } = host;
  const { prompts: listed } = await client.listPrompts();
  const { arguments: wanted } = listed.find(({ name }) => name === 'test_prompt_with_arguments');
  check('the arguments of a prompt', wanted.map(({ name, required }) => [name, required]), [['arg1', true], ['arg2', true]]);
  const get = async (name, args) => (await client.getPrompt({ name, ...(args && { arguments: args }) })).messages;
  check('a prompt', (await get('test_simple_prompt'))[0].content.text, 'This is a simple prompt for testing.');
  const [filled] = await get('test_prompt_with_arguments', { arg1: 'a', arg2: 'b' });
  check('a prompt with arguments', filled.content.text, "Prompt with arguments: arg1='a', arg2='b'");
  const [embedded] = await get('test_prompt_with_embedded_resource', { resourceUri: 'test://x' });
  check('a prompt with a resource', embedded.content.resource.uri, 'test://x');
  check('a prompt with an image', (await get('test_prompt_with_image'))[0].content.mimeType, 'image/png');
  check('an unknown prompt', await code(get('none')), INVALID_PARAMS);
}

async function completion({ client }) {
  const values = async (ref, name, value) => (await client.complete({ ref, argument: { name, value } })).completion.values;
  const prompt = { type: 'ref/prompt', name: 'test_prompt_with_arguments' };
  check('completion of an argument', await values(prompt, 'arg1', 'par'), ['paris', 'park', 'party']);
  const template = { type: 'ref/resource', uri: 'test://template/{id}/data' };
  check('completion of a template', await values(template, 'id', '12'), ['123', '124']);
}

async function progressAndLogs(host) {
  const steps = [];
  await host.call('test_tool_with_progress', {}, { onprogress: ({ progress, total }) => steps.push([progress, total]) });
  check('progress', steps, [[0, 100], [50, 100], [100, 100]]);
  if (host.era === 'legacy') await host.client.setLoggingLevel('debug');
  await host.call('test_tool_with_logging', {}, { _meta: { 'io.modelcontextprotocol/logLevel': 'debug' } });
  const messages = ['Tool execution started', 'Tool processing data', 'Tool execution completed'];
  check('log messages', host.logged.filter((data) => messages.includes(data)), messages);
}

async function questions(host) {
  const question = 'What is the capital of France?';
  check('sampling', await text(host, 'test_sampling', { prompt: question }), 'LLM response: Paris');
  const elicited = await text(host, 'test_elicitation', { message: 'Who are you?' });
  check('elicitation', [elicited.startsWith('User response: action=accept'), elicited.includes('Alice')], [true, true]);
  check('roots', await text(host, 'test_roots'), ROOT);
  check('what the server asked', host.asked, [question, 'Who are you?', 'roots']);
}

/** The requests for input that the modern era puts into results. */
async function inputRounds(host) {
  check('an elicitation in a result', await text(host, 'test_input_required_result_elicitation'), 'Hello, Alice!');
  const many = await host.call('test_input_required_result_multiple_inputs');
  check('three questions in a result', many.isError ?? false, false);
  const rounds = await host.call('test_input_required_result_multi_round');
  check('two rounds with state', rounds.isError ?? false, false);
  const { messages: [message] } = await host.client.getPrompt({ name: 'test_input_required_result_prompt' });
  check('a question of a prompt', message.content.text, 'Prompt with context: Alice');
}

async function cancellation(host) {
  const count = async () => Number(await text(host, 'test_cancellation_count'));
  const before = await count();
  const abort = new AbortController();
  const options = { signal: abort.signal, onprogress: () => abort.abort('enough') };
  const outcome = await host.call('test_cancellation', {}, options).then(() => 'a result', () => 'cancelled');
  check('the call was cancelled', outcome, 'cancelled');
  // The count changes when the server has seen the cancellation; the deadline of the script bounds the loop.
  while (await count() === before);
  check('the server stopped the call', await count(), before + 1);
}

async function main() {
  const [era, ...endpoint] = process.argv.slice(2);
  if (!['legacy', 'modern'].includes(era) || endpoint.length === 0) {
    throw new Error('usage: typescript_client.mjs legacy|modern URL|COMMAND ARGS...');
  }
  const host = await connect(era, endpoint);
  const both = [identity, tools, toolErrors, resources, subscription, prompts, completion, progressAndLogs, questions];
  const sections = era === 'modern' ? [...both, inputRounds, cancellation] : [...both, cancellation];
  for (const section of sections) await section(host);
  await host.client.close();
}

run(main);
