import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { printLine } from '../lib/launch/launch-error.mjs';
import { root } from '../lib/launch/paths.mjs';
import { runScript } from './run-script.mjs';

/**
 * Runs a stage's programs and vitest, prefixes their output with the stage's name, and returns counts.
 *
 * @typedef {object} Tally
 * @property {number} passed tests
 * @property {number} failed tests; a run that fails without a failed test counts as one
 * @property {number} [skipped]
 * @property {string[]} notes a paragraph for each failure
 * @property {boolean} [isBuilt] the build exists despite the failure
 *
 * @typedef {object} Job a stage and what it runs
 * @property {string} name
 * @property {import('./stages.mjs').Stage} stage
 * @property {readonly string[]} files paths from the root
 * @property {boolean} isRelated the files are sources; runs the tests that import them
 * @property {number} cpuSeconds grows with each process
 * @property {string} lastLine of the output
 * @property {string[]} leftOut a line per skipped item
 * @property {Record<string, string>} [env] of its processes
 */

/** Limit for a hung stage. */
const STAGE_LIMIT_MS = 3_600_000;
const SOAK_LIMIT_MS = 24 * STAGE_LIMIT_MS;
const CONFIG = 'tests/vitest.config.ts';

const reports = mkdtempSync(join(tmpdir(), 'interlude-tests-'));
process.once('exit', () => rmSync(reports, { recursive: true, force: true }));

const isSoak = () => process.env.INTERLUDE_TEST_SCALE === 'soak';

/**
 * Runs a Node script of a stage.
 *
 * @param {Job} job
 * @param {readonly string[]} args script and arguments
 * @param {Record<string, string>} [env]
 * @returns {Promise<boolean>} true if it exited with 0
 */
export async function runFor(job, args, env = {}) {
  const onLine = (/** @type {string} */ line) => {
    job.lastLine = line;
    printLine(`${job.name.padEnd(11)} │ ${line}`);
  };
  const limitMs = isSoak() ? SOAK_LIMIT_MS : STAGE_LIMIT_MS;
  const { isSuccess, cpuSeconds } = await runScript(args, { env, limitMs, onLine });
  job.cpuSeconds += cpuSeconds;
  return isSuccess;
}

/**
 * Runs test files with vitest. A file that no configuration includes is a failure.
 *
 * @param {Job} job
 * @param {readonly string[]} files
 * @param {Pick<import('./stages.mjs').Stage, 'config' | 'workers' | 'isolated' | 'tier'> & { isRelated: boolean }}
 *   options
 * @returns {Promise<Tally & { broken: string[] }>} `broken`: files with failures
 */
export async function runVitest(job, files, { config = CONFIG, workers = 2, isolated = false, tier, isRelated }) {
  const output = join(reports, `${job.name}.json`);
  rmSync(output, { force: true });
  const args = [join(root, 'node_modules', 'vitest', 'vitest.mjs'), ...(isRelated ? ['related', '--run'] : ['run'])];
  args.push(
    ...files,
    '--config',
    config,
    '--reporter=default',
    `--reporter=${join(root, 'tests', 'json-report.mjs')}`,
    `--outputFile.json=${output}`,
  );
  args.push('--silent=passed-only', '--slowTestThreshold=60000', `--maxWorkers=${workers}`);
  if (isRelated) args.push('--passWithNoTests', '--exclude=**/*.all.test.*');
  // Files without module state run a third faster without isolation.
  if (!isolated) args.push('--no-isolate');
  const scale = isSoak() ? 'soak' : tier === 'first' ? 'quick' : 'full';
  const only = isRelated ? { INTERLUDE_TEST_FOLDER: job.name } : undefined;
  const isSuccess = await runFor(job, args, { ...job.env, INTERLUDE_TEST_SCALE: scale, ...only });
  if (!existsSync(output)) return { ...failure('vitest wrote no report; see its output above'), broken: [] };
  /** @type {{ numPassedTests: number, numFailedTests: number, numPendingTests: number, testResults: FileResult[] }} */
  const report = JSON.parse(readFileSync(output, 'utf8'));
  const notes = report.testResults.flatMap(notesOf);
  const ran = new Set(report.testResults.map(({ name }) => relative(root, name).replaceAll('\\', '/')));
  if (!isRelated) notes.push(...files.filter((file) => !ran.has(file)).map((file) => `${file} did not run`));
  if (!isSuccess && notes.length === 0) notes.push('failed, though none of its tests did; see its output above');
  for (const { fullName, status } of report.testResults.flatMap(({ assertionResults }) => assertionResults)) {
    if (status !== 'passed' && status !== 'failed' && fullName.includes('not run: ')) job.leftOut.push(fullName);
  }
  const broken = report.testResults.filter(({ status }) => status === 'failed');
  return {
    passed: report.numPassedTests,
    failed: Math.max(report.numFailedTests, notes.length > 0 ? 1 : 0),
    skipped: report.numPendingTests,
    notes,
    broken: broken.map(({ name }) => relative(root, name)),
  };
}

/**
 * The fields read from vitest's report of a file.
 *
 * @typedef {object} FileResult
 * @property {string} name absolute path
 * @property {string} status
 * @property {string} message
 * @property {{ fullName: string, status: string, failureMessages: string[] }[]} assertionResults
 */

/** @param {FileResult} file */
function notesOf({ name, status, message, assertionResults }) {
  const file = relative(root, name);
  const tests = assertionResults.filter((test) => test.status === 'failed');
  if (tests.length === 0 && status === 'failed') return [`${file} failed\n${message}`];
  return tests.map((test) => `${file} > ${test.fullName} failed\n${test.failureMessages.join('\n')}`);
}

/** @type {Tally} */
export const PASSED = { passed: 1, failed: 0, notes: [] };

/** @param {string} why @returns {Tally} */
export const failure = (why) => ({ passed: 0, failed: 1, notes: [why] });
