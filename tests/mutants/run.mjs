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

/** Limit in milliseconds of a batch of mutants, and of the run of all tests without a mutant. */
const LIMIT_MS = 1_800_000;

/** Mutants that share a process at least. */
const MIN_BATCH = 4;

/** More than the number of CPUs, because many mutants only wait. */
const AT_ONCE = Math.min(availableParallelism() + 1, 3);

/** @typedef {import('./mutant.mjs').Mutant} Mutant */
/** @typedef {import('./batch.mjs').Verdict} Verdict */

/**
 * The part of vitest's JSON report that is read.
 *
 * @typedef {object} FileReport
 * @property {string} name absolute path
 * @property {string} status
 * @property {number} startTime
 * @property {number} endTime
 * @property {{ status: string }[]} assertionResults
 */

const folder = mkdtempSync(join(tmpdir(), 'interlude-mutants-'));
const ENV = { INTERLUDE_TEST_WAIT_MS: String(WAIT_MS), INTERLUDE_MUTANT_CACHE: join(folder, 'cache') };

/** @param {string[]} names */
async function run(names) {
  const unknown = names.find((name) => !MUTANTS.some((mutant) => mutant.name === name));
  if (unknown !== undefined) throw new LaunchError(`unknown mutant "${unknown}"`, 2);
  const chosen = MUTANTS.filter(({ name }) => names.length === 0 || names.includes(name));
  const startedAt = performance.now();
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
  // The longest first, in batches that get smaller, so no worker ends long after the others.
  const queue = runnable.sort((a, b) => sound.get(b.test).ms - sound.get(a.test).ms);
  let passed = 0;
  const work = async () => {
    while (queue.length > 0) {
      const batch = queue.splice(0, Math.max(MIN_BATCH, Math.ceil(queue.length / (4 * AT_ONCE))));
      const verdicts = await runBatch(batch);
      const next = batch[verdicts.length];
      // A batch that ends early stopped at this mutant; the others run again.
      if (next) fail(next, 'no verdict: over the limit, or its run failed');
      queue.unshift(...batch.slice(verdicts.length + 1));
      for (const [index, { killedBy, why = 'survived' }] of verdicts.entries()) {
        if (killedBy !== undefined) passed += 1;
        else fail(/** @type {Mutant} */ (batch[index]), why);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));

  for (const failure of failures) printLine(`FAILED  ${failure}`);
  const wall = ((performance.now() - startedAt) / 1_000).toFixed(0);
  printLine(`${passed} of ${chosen.length} mutants killed, CPU ${cpuSum.toFixed(0)} s, wall ${wall} s`);
  printLine(`${passed} passed, ${failures.length} failed`);
  process.exitCode = failures.length === 0 ? 0 : 1;
}

/**
 * Runs the test files without a mutant. A test that fails by itself proves nothing. Fills the cache of transformed modules.
 *
 * @param {string[]} tests
 * @returns {Promise<Map<string, { isSound: boolean, ms: number }>>}
 */
async function unmutated(tests) {
  const report = join(folder, 'unmutated.json');
  const args = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...tests];
  args.push('--config', 'tests/mutants/vitest.config.ts', `--maxWorkers=${AT_ONCE}`);
  args.push('--reporter=json', `--outputFile=${report}`);
  let output = '';
  const { cpuSeconds } = await runScript(args, {
    env: ENV,
    limitMs: LIMIT_MS,
    onLine: (line) => {
      output += `${line}\n`;
    },
  });
  cpuSum += cpuSeconds;
  /** @type {{ testResults: FileReport[] }} */
  const { testResults } = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : { testResults: [] };
  const sound = new Map(
    testResults.map(({ name, status, assertionResults, startTime, endTime }) => {
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

/** CPU seconds of all runs. */
let cpuSum = 0;

/**
 * @param {readonly Mutant[]} batch
 * @returns {Promise<Verdict[]>} in order; fewer than mutants if the process ended early
 */
async function runBatch(batch) {
  /** @type {Verdict[]} */
  const verdicts = [];
  const { cpuSeconds } = await runScript([join(root, 'tests/mutants/batch.mjs'), ...batch.map(({ name }) => name)], {
    env: ENV,
    limitMs: LIMIT_MS,
    onLine: (line) => {
      if (!line.startsWith('{"name":')) return;
      /** @type {Verdict} */
      const verdict = JSON.parse(line);
      verdicts.push(verdict);
      const { name, killedBy, why = 'survived', seconds } = verdict;
      printLine(`${killedBy === undefined ? `FAILED  ${name}: ${why}` : `killed  ${name}`} (${seconds.toFixed(1)} s)`);
      if (killedBy !== undefined) printLine(`        by ${batch[verdicts.length - 1]?.test} > ${killedBy}`);
    },
  });
  cpuSum += cpuSeconds;
  return verdicts;
}

process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    endAll();
    process.exit(130);
  });
}

await run(process.argv.slice(2)).catch(exitWithError);
