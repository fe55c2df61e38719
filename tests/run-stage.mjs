import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { root } from '../lib/launch/root.mjs';
import { say } from '../lib/launch/say.mjs';

/**
 * Programs and vitest runs of one stage: their output line by line under the stage's name, their result as counts, and
 * the CPU time of every process they start.
 *
 * @typedef {object} Tally
 * @property {number} passed tests
 * @property {number} failed tests; a run that fails without a failed test counts as one
 * @property {number} [skipped]
 * @property {string[]} notes a paragraph for each failure
 *
 * @typedef {object} Job a stage and what it runs
 * @property {string} name
 * @property {import('./stages.mjs').Stage} stage
 * @property {readonly string[]} files paths from the root
 * @property {boolean} isRelated the files are sources, and the tests that import them run
 * @property {number} cpuSeconds grows with each process
 * @property {string[]} leftOut a line for each thing that can't run here
 */

/** A stage that hangs must not hang the run. */
const STAGE_LIMIT_MS = 3_600_000;
const SOAK_LIMIT_MS = 24 * STAGE_LIMIT_MS;
const CPU_POLL_MS = 400;
const CONFIG = 'tests/vitest.config.ts';

const reports = mkdtempSync(join(tmpdir(), 'interlude-tests-'));
process.once('exit', () => rmSync(reports, { recursive: true, force: true }));

/** Running programs, each the head of a process group. @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();

export function endAll() {
  for (const child of running) endGroup(child);
}

/**
 * Runs a Node script as a stage's own process group, which ends with it.
 *
 * @param {Job} job
 * @param {readonly string[]} args script and arguments
 * @param {Record<string, string>} [env]
 * @returns {Promise<boolean>} whether it exited with 0
 */
export function runScript(job, args, env = {}) {
  return new Promise((resolve) => {
    // The shell prints the CPU times of all it has waited for, which Node can't ask for.
    const [program, prefix] =
      process.platform === 'win32'
        ? [process.execPath, []]
        : ['sh', ['-c', '"$@"; s=$?; times >&3; exit $s', 'sh', process.execPath]];
    const child = spawn(program, [...prefix, ...args], {
      ...{ cwd: root, env: { ...process.env, ...env }, detached: true },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    running.add(child);
    for (const stream of [child.stdout, child.stderr]) {
      if (stream) createInterface({ input: stream }).on('line', (line) => say(`${job.name.padEnd(11)} │ ${line}`));
    }
    let times = '';
    child.stdio[3]?.on('data', (chunk) => {
      times += chunk;
    });
    const cpu = followCpu(child.pid);
    const limitMs = env.INTERLUDE_TEST_SCALE === 'soak' ? SOAK_LIMIT_MS : STAGE_LIMIT_MS;
    const limit = setTimeout(() => {
      say(`${job.name.padEnd(11)} │ ended after ${limitMs / 1_000} s`);
      endGroup(child);
    }, limitMs);
    const settle = (/** @type {boolean} */ passed) => {
      clearTimeout(limit);
      running.delete(child);
      endGroup(child);
      job.cpuSeconds += Math.max(cpu.stop(), childSeconds(times));
      resolve(passed);
    };
    child.once('close', (code) => settle(code === 0));
    child.once('error', () => settle(false));
  });
}

/** @param {import('node:child_process').ChildProcess} child */
function endGroup(child) {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // every process of the group has ended
  }
}

/**
 * CPU seconds of the shell's children from the second line of `times`: "1m2.3s 0m4.5s".
 *
 * @param {string} times
 */
function childSeconds(times) {
  const line = times.trim().split('\n')[1] ?? '';
  const parts = [...line.matchAll(/(\d+)m([\d.]+)s/g)];
  return parts.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0);
}

/**
 * Adds up the CPU time of a process and its descendants from /proc (0 elsewhere). `times` misses the browsers, whose
 * processes nobody waits for; this misses what starts and ends between two polls. So the greater one counts.
 *
 * @param {number | undefined} pid
 * @returns {{ stop(): number }} `stop` returns CPU seconds
 */
function followCpu(pid) {
  /** Ticks by pid, of the stage's processes only. @type {Map<number, number>} */
  const ticks = new Map();
  const poll = () => {
    for (const entry of listing('/proc')) {
      if (!/^\d+$/.test(entry)) continue;
      // pid (name) state ppid pgrp … utime stime are the fields 14 and 15
      const fields = content(`/proc/${entry}/stat`)
        .replace(/^.*\) /s, '')
        .split(' ');
      const isOurs = Number(entry) === pid || ticks.has(Number(entry)) || ticks.has(Number(fields[1]));
      if (isOurs && fields.length > 12) ticks.set(Number(entry), Number(fields[11]) + Number(fields[12]));
    }
  };
  const timer = process.platform === 'linux' && pid ? setInterval(poll, CPU_POLL_MS) : undefined;
  return {
    stop() {
      clearInterval(timer);
      return [...ticks.values()].reduce((sum, one) => sum + one, 0) / 100;
    },
  };
}

/** @param {string} folder */
function listing(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** @param {string} file */
function content(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/**
 * Runs test files with vitest. Each must run: a file that no configuration includes is a failure, too.
 *
 * @param {Job} job
 * @param {readonly string[]} files
 * @param {Pick<import('./stages.mjs').Stage, 'config' | 'workers' | 'isolated' | 'tier'> & { isRelated: boolean }} options
 * @returns {Promise<Tally & { broken: string[] }>} `broken`: the files in which something failed
 */
export async function runVitest(job, files, { config = CONFIG, workers = 2, isolated = false, tier, isRelated }) {
  const output = join(reports, `${job.name}.json`);
  rmSync(output, { force: true });
  const args = [join(root, 'node_modules', 'vitest', 'vitest.mjs'), ...(isRelated ? ['related', '--run'] : ['run'])];
  args.push(...files, '--config', config, '--reporter=default', '--reporter=json', `--outputFile.json=${output}`);
  args.push('--silent=passed-only', '--slowTestThreshold=60000', `--maxWorkers=${workers}`);
  if (isRelated) args.push('--passWithNoTests', '--exclude=**/*.all.test.*');
  // Files that leave nothing behind in modules take a third less in one realm.
  if (!isolated) args.push('--no-isolate');
  const scale = process.env.INTERLUDE_TEST_SCALE === 'soak' ? 'soak' : tier === 'first' ? 'quick' : 'full';
  const only = isRelated ? { INTERLUDE_TEST_FOLDER: job.name } : undefined;
  const exited = await runScript(job, args, { INTERLUDE_TEST_SCALE: scale, ...only });
  if (!existsSync(output)) return { ...failure('vitest wrote no report; see its output above'), broken: [] };
  /** @type {{ numPassedTests: number, numFailedTests: number, numPendingTests: number, testResults: FileResult[] }} */
  const report = JSON.parse(readFileSync(output, 'utf8'));
  const notes = report.testResults.flatMap(notesOf);
  const ran = new Set(report.testResults.map(({ name }) => relative(root, name).replaceAll('\\', '/')));
  if (!isRelated) notes.push(...files.filter((file) => !ran.has(file)).map((file) => `${file} did not run`));
  if (!exited && notes.length === 0) notes.push('failed, though none of its tests did; see its output above');
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
 * What is read of a file in vitest's report.
 *
 * @typedef {object} FileResult
 * @property {string} name its whole path
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
