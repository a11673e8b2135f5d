// The command line of the MCP Inspector against the example `everything_server`: each method is a run of the program.
// Usage: node inspector.mjs legacy|modern URL
//        node inspector.mjs legacy|modern COMMAND ARGS...

import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { check, run } from '../check.mjs';

const PROGRAM = fileURLToPath(
  new URL('../node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js', import.meta.url),
);

// Ten starts of a large program.
const DEADLINE_MS = 120_000;

/** Runs one method; returns its result, or the exit code and the complaint of the program. */
function inspect(home, era, endpoint, method, ...options) {
  const args = ['--cli', ...endpoint, '--protocol-era', era, '--method', method, '--quiet', ...options];
  // The Inspector keeps a catalog and credentials in the home directory.
  const env = { ...process.env, HOME: home };
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, ...args], { env }, (error, stdout, stderr) => {
      resolve(error ? { exit: error.code, complaint: stderr } : JSON.parse(stdout));
    });
  });
}

async function inspectEverything(home, era, endpoint) {
  const ask = (...method) => inspect(home, era, endpoint, ...method);
  const call = (name, ...args) => ask('tools/call', '--tool-name', name, ...args.flatMap((arg) => ['--tool-arg', arg]));

  const { tools } = await ask('tools/list');
  check('tools', tools?.[0].name, 'test_simple_text');
  const text = await call('test_simple_text');
  check('a tool', text.content?.[0].text, 'This is a simple text response for testing.');
  const sum = await call('test_structured_content', 'a=2', 'b=40');
  check('structured content', sum.structuredContent, { sum: 42 });
  check('an unknown tool', (await call('no_such_tool')).exit > 0, true);

  const { resources } = await ask('resources/list');
  check('resources', resources?.some(({ uri }) => uri === 'test://static-text'), true);
  const read = await ask('resources/read', '--uri', 'test://static-text');
  check('a resource', read.contents?.[0].text, 'This is the content of the static text resource.');
  const { resourceTemplates } = await ask('resources/templates/list');
  check('templates', resourceTemplates?.[0].uriTemplate, 'test://template/{id}/data');

  const { prompts } = await ask('prompts/list');
  check('prompts', prompts?.some(({ name }) => name === 'test_simple_prompt'), true);
  const filled = await ask('prompts/get', '--prompt-name', 'test_prompt_with_arguments', '--prompt-args', 'arg1=a', 'arg2=b');
  check('a prompt', filled.messages?.[0].content.text, "Prompt with arguments: arg1='a', arg2='b'");
  if (era === 'legacy') {
    check('the level of logs', (await ask('logging/setLevel', '--log-level', 'debug')).exit, undefined);
  }
}

async function main() {
  const [era, ...endpoint] = process.argv.slice(2);
  if (!['legacy', 'modern'].includes(era) || endpoint.length === 0) {
    throw new Error('usage: inspector.mjs legacy|modern URL|COMMAND ARGS...');
  }
  const home = await mkdtemp(join(tmpdir(), 'inspector-'));
  try {
    await inspectEverything(home, era, endpoint);
  } finally {
    await rm(home, { recursive: true });
  }
}

run(main, DEADLINE_MS);
