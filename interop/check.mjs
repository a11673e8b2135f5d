// Assertions of the interop scripts: one line per assertion, and the exit code.

import { inspect, isDeepStrictEqual } from 'node:util';

const DEADLINE_MS = 30_000;
let held = 0;
let broken = 0;

/** One assertion: `actual` must deeply equal `expected`. The script goes on if it does not. */
export function check(what, actual, expected) {
  const holds = isDeepStrictEqual(actual, expected);
  holds ? held++ : broken++;
  console.log(holds ? `ok    ${what}` : `FAIL  ${what}: got ${brief(actual)}, want ${brief(expected)}`);
}

/** Runs a script to its end. What it throws, and what it waits for in vain, fails it too. */
export function run(main, deadlineMs = DEADLINE_MS) {
  process.on('uncaughtException', abandon);
  setTimeout(() => abandon(new Error(`the peer left us waiting for ${deadlineMs / 1000} s`)), deadlineMs);
  main().then(conclude, abandon);
}

function conclude() {
  if (broken > 0) {
    console.error(`${broken} of ${held + broken} assertions failed`);
  }
  process.exit(broken === 0 && held > 0 ? 0 : 1);
}

function abandon(error) {
  console.error(`stopped after ${held + broken} assertions: ${error.message ?? inspect(error)}`);
  process.exit(1);
}

function brief(value) {
  return inspect(value, { breakLength: Infinity, maxArrayLength: 5, maxStringLength: 200 });
}
