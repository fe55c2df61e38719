/**
 * `npm run test:mutants [-- name…]`: runs each mutant against the test that must fail. A mutant is killed
 * if one of that file's tests fails while the file's unmutated run passes. The last line is the sum.
 *
 * Failure: a mutant that survives, is never loaded, or keeps its test file from running at all fails the run, and so
 * does an entry that no longer fits its source file.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { exitWithError, LaunchError, printLine } from '../../lib/launch/launch-error.mjs';
import { root } from '../../lib/launch/paths.mjs';
import { endAll, runScript } from '../run-script.mjs';
import { staleness } from './mutant.mjs';
import { MUTANTS } from './mutants.mjs';

/** Limit in milliseconds of each wait in a test. Most mutants cause a condition that never becomes true. */
const WAIT_MS = 5_000;

/** Limits in milliseconds of a run with one mutant, and of the run of all tests without a mutant. */
const MUTANT_LIMIT_MS = 120_000;
const UNMUTATED_LIMIT_MS = 1_800_000;

/** More than the number of CPUs, because many mutants only wait. */
const AT_ONCE = Math.min(availableParallelism() + 1, 3);

/** @typedef {import('./mutant.mjs').Mutant} Mutant */

/**
 * The part of vitest's JSON report that is read.
 *
 * @typedef {object} FileReport
 * @property {string} name absolute path
 * @property {string} status
 * @property {string} message
 * @property {number} startTime
 * @property {number} endTime
 * @property {{ fullName: string, status: string }[]} assertionResults
 */

const folder = mkdtempSync(join(tmpdir(), 'interlude-mutants-'));

/** @param {string[]} names */
async function run(names) {
  const unknown = names.find((name) => !MUTANTS.some((mutant) => mutant.name === name));
  if (unknown !== undefined) throw new LaunchError(`unknown mutant "${unknown}"`, 2);
  const chosen = MUTANTS.filter(({ name }) => names.length === 0 || names.includes(name));
  const beganAt = performance.now();
  /** @type {string[]} */
  const failures = [];
  /** @type {(mutant: Mutant, why: string) => void} */
  const fail = ({ name, file, test }, why) => failures.push(`${name}: ${why} (${file}, ${test})`);

  const current = chosen.filter((mutant) => {
    const why = staleness(mutant);
    if (why !== null) fail(mutant, `stale: ${why}`);
    return why === null;
  });
  const tests = [...new Set(current.map(({ test }) => test))];
  const sound = tests.length === 0 ? new Map() : await unmutated(tests);
  const runnable = current.filter((mutant) => {
    const known = sound.get(mutant.test);
    if (known?.isSound !== true) fail(mutant, 'its test fails without the mutant');
    return known?.isSound === true;
  });
  // longest first, so that all workers finish at about the same time
  const queue = runnable.sort((a, b) => sound.get(b.test).ms - sound.get(a.test).ms);
  let passed = 0;
  const work = async () => {
    for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
      const startedAt = performance.now();
      const { killedBy, why, cpuSeconds } = await verdictOn(mutant);
      const wallSeconds = (performance.now() - startedAt) / 1_000;
      if (killedBy === undefined) fail(mutant, why ?? 'survived');
      else passed += 1;
      const verdict = killedBy === undefined ? `FAILED  ${mutant.name}: ${why}` : `killed  ${mutant.name}`;
      printLine(`${verdict} (CPU ${cpuSeconds.toFixed(1)} s, wall ${wallSeconds.toFixed(1)} s)`);
      if (killedBy !== undefined) printLine(`        by ${mutant.test} > ${killedBy}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));

  for (const failure of failures) printLine(`FAILED  ${failure}`);
  const wall = ((performance.now() - beganAt) / 1_000).toFixed(0);
  printLine(`${passed} of ${chosen.length} mutants killed, CPU ${cpuSum.toFixed(0)} s, wall ${wall} s`);
  printLine(`${passed} passed, ${failures.length} failed`);
  process.exitCode = failures.length === 0 ? 0 : 1;
}

/**
 * Runs the test files without a mutant. A test that fails by itself proves nothing.
 *
 * @param {string[]} tests
 * @returns {Promise<Map<string, { isSound: boolean, ms: number }>>}
 */
async function unmutated(tests) {
  const { files, output, cpuSeconds } = await vitest(tests, 'unmutated', AT_ONCE, {});
  const sound = new Map(
    files.map(({ name, status, assertionResults, startTime, endTime }) => {
      const isSound = status === 'passed' && assertionResults.some((test) => test.status === 'passed');
      return [relative(root, name), { isSound, ms: endTime - startTime }];
    }),
  );
  const broken = tests.filter((test) => sound.get(test)?.isSound !== true);
  if (broken.length > 0) printLine(`${output}\nfailed without a mutant: ${broken.join(', ')}`);
  printLine(
    `${tests.length - broken.length} of ${tests.length} test files pass without a mutant (CPU ${cpuSeconds.toFixed(0)} s)`,
  );
  return sound;
}

let runs = 0;
/** CPU seconds of all runs. */
let cpuSum = 0;

/**
 * @param {Mutant} mutant
 * @returns {Promise<{ killedBy?: string, why?: string, cpuSeconds: number }>}
 */
async function verdictOn({ name, test }) {
  runs += 1;
  const loaded = join(folder, `loaded-${runs}`);
  const env = { INTERLUDE_MUTANT: name, INTERLUDE_MUTANT_LOADED: loaded };
  const { files, output, cpuSeconds } = await vitest([test], `mutant-${runs}`, 1, env);
  const [file] = files;
  if (file === undefined) return { why: `vitest did not report: ${output.trim().split('\n').at(-1)}`, cpuSeconds };
  if (!existsSync(loaded)) return { why: 'never loaded by its test', cpuSeconds };
  const killer = file.assertionResults.find(({ status }) => status === 'failed');
  if (killer !== undefined) return { killedBy: killer.fullName, cpuSeconds };
  if (file.status !== 'passed') return { why: `its test file did not run: ${file.message.split('\n')[0]}`, cpuSeconds };
  return { why: 'survived', cpuSeconds };
}

/**
 * @param {string[]} files
 * @param {string} name of the report
 * @param {number} workers
 * @param {Record<string, string>} env
 * @returns {Promise<{ files: FileReport[], output: string, cpuSeconds: number }>} no files if vitest ended without a report
 */
async function vitest(files, name, workers, env) {
  const isMutated = env.INTERLUDE_MUTANT !== undefined;
  const report = join(folder, `${name}.json`);
  const args = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...files];
  args.push('--config', 'tests/mutants/vitest.config.ts', `--maxWorkers=${workers}`);
  if (isMutated) args.push('--bail=1');
  args.push('--reporter=json', `--outputFile=${report}`);
  const shared = { INTERLUDE_TEST_WAIT_MS: String(WAIT_MS), INTERLUDE_MUTANT_CACHE: join(folder, 'cache') };
  let output = '';
  const { cpuSeconds } = await runScript(args, {
    env: { ...shared, ...env },
    limitMs: isMutated ? MUTANT_LIMIT_MS : UNMUTATED_LIMIT_MS,
    onLine: (line) => {
      output += `${line}\n`;
    },
  });
  cpuSum += cpuSeconds;
  if (!existsSync(report)) return { files: [], output, cpuSeconds };
  /** @type {{ testResults: FileReport[] }} */
  const { testResults } = JSON.parse(readFileSync(report, 'utf8'));
  return { files: testResults, output, cpuSeconds };
}

process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    endAll();
    process.exit(130);
  });
}

await run(process.argv.slice(2)).catch(exitWithError);
