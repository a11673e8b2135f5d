// Judges the results of a run of the MCP conformance suite by the requirements of a revision: prints a summary, and
// each check that failed or warned. Fails if a scored scenario has a failed check, or has not run.
// Usage: node conformance_report.mjs server|client REVISION FOLDER

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

const [leg, revision, folder] = process.argv.slice(2);
const REQUIREMENTS = new URL('../node_modules/@modelcontextprotocol/conformance/requirements/', import.meta.url);
const STAMP = /-\d{4}-\d\d-\d\dT[\d-]+Z$/;

const requirements = parse(readFileSync(new URL(`${revision}.yaml`, REQUIREMENTS), 'utf8'));
const scored = requirements[leg];
const unscored = requirements.not_scored.filter((entry) => entry.leg === leg).map(({ scenario }) => scenario);
const results = collect(folder);

/** The checks of each scenario. The folder of a result is `[server-]SCENARIO-TIME`, and a scenario may have a slash. */
function collect(base, prefix = '') {
  const found = new Map();
  for (const entry of existsSync(base) ? readdirSync(base, { withFileTypes: true }) : []) {
    const path = join(base, entry.name);
    const checks = join(path, 'checks.json');
    if (existsSync(checks)) {
      const name = (prefix + entry.name).replace(STAMP, '');
      const scenario = leg === 'server' ? name.replace(/^server-/, '') : name;
      found.set(scenario, JSON.parse(readFileSync(checks, 'utf8')));
    } else if (entry.isDirectory()) {
      for (const nested of collect(path, `${entry.name}/`)) found.set(...nested);
    }
  }
  return found;
}

function withStatus(scenario, status) {
  return (results.get(scenario) ?? []).filter((check) => check.status === status);
}

function tell(scenarios, status, mark) {
  for (const scenario of scenarios) {
    for (const { id, errorMessage, description } of withStatus(scenario, status)) {
      console.log(`  ${mark} ${scenario}: ${id}: ${brief(errorMessage ?? description)}`);
    }
  }
}

/** One line: the check of the wire schema quotes every bad message. */
function brief(text) {
  const [line] = text.split('\n');
  return line.length > 400 ? `${line.slice(0, 400)}...` : line;
}

function count(scenarios, status) {
  return scenarios.reduce((sum, scenario) => sum + withStatus(scenario, status).length, 0);
}

function passes(scenario) {
  return withStatus(scenario, 'SUCCESS').length > 0 && withStatus(scenario, 'FAILURE').length === 0;
}

const passed = scored.filter(passes);
const extra = unscored.filter(passes);
console.log(
  `${leg} ${revision}: ${passed.length} of ${scored.length} scored scenarios pass, with ` +
    `${count(scored, 'SUCCESS')} checks held, ${count(scored, 'FAILURE')} failed and ${count(scored, 'WARNING')} warnings; ` +
    `${extra.length} of ${unscored.length} unscored scenarios pass`,
);
for (const scenario of scored.filter((name) => !passes(name) && withStatus(name, 'FAILURE').length === 0)) {
  console.log(`  FAIL ${scenario}: no check succeeded`);
}
tell(scored, 'FAILURE', 'FAIL');
tell(scored, 'WARNING', 'warn');
for (const scenario of unscored.filter((name) => !passes(name))) {
  console.log(`  not scored: ${scenario} ${withStatus(scenario, 'FAILURE').length > 0 ? 'fails' : 'does not apply'}`);
}
process.exit(passed.length === scored.length ? 0 : 1);
