/**
 * `npm test`: installs what is missing and runs everything, what fails cheapest first. `npm test -- unit e2e` runs
 * those stages only, one after the other. Every stage runs, whatever became of those before it; what failed is told
 * once more at the end, and the last line is the sum.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants, setPriority, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { buildWhatIsOld } from '../lib/launch/build.mjs';
import { installWhatIsMissing } from '../lib/launch/install.mjs';
import { root } from '../lib/launch/root.mjs';
import { giveUp, LaunchError, say } from '../lib/launch/say.mjs';
import { ensureAgentSdk } from './support/agent-sdk.mjs';
import { ensureChromium } from './support/chromium-path.mjs';
import { firstLoad } from './support/first-load.mjs';
import { ensureLibsqlServer } from './support/libsql-server.mjs';
import { ensureRealAgents, REAL_AGENTS } from './support/real-agents.mjs';
import { ensureVercelCli } from './support/vercel-build.mjs';
import { ensureWorkerd } from './support/workerd.mjs';

/** A stage that hangs must not hang the run. A machine that is half as fast as usual is no such stage. */
const STAGE_LIMIT_MS = 3_600_000;

const reports = mkdtempSync(join(tmpdir(), 'interlude-tests-'));

/** Tests that leave nothing behind in modules need none of their own, and take a third less without. */
const SHARED = { options: ['--no-isolate'] };

const PROCESSES = { config: 'tests/vitest.faults.config.ts' };

/** The tests of the real Claude Code, which needs nothing but the Agent SDK. */
const CLAUDE_TESTS = ['agent-tools', 'attachments', 'claude', 'composer-live', 'demo', 'hooks'].map(
  (name) => `tests/agents/${name}.test.ts`,
);

/** Large, and no agent of its own: only with `npm run test:agents -- all`. */
const ON_REQUEST = new Set(['copilotkit']);

const OUR_CODE = ['app', 'components', 'lib', 'db', 'instrumentation.ts', 'next.config.mjs', 'proxy.ts'];

/** @type {Record<string, () => Promise<Tally>>} */
const STAGES = {
  lint: async () => {
    const results = [
      await passes(bin('@biomejs/biome', 'bin/biome'), ['check', '.']),
      await passes(bin('oxlint', 'bin/oxlint'), ['app', 'components']),
      await passes(bin('oxlint', 'bin/oxlint'), ['-c', '.oxlintrc.imports.json', ...OUR_CODE]),
    ];
    return results.every(Boolean) ? PASSED : failed('see what it said above');
  },
  types: async () => {
    // Next writes the types of its own imports (styles, images) here; a fresh checkout has none.
    const generated =
      existsSync(join(root, 'next-env.d.ts')) || (await passes(bin('next', 'dist/bin/next'), ['typegen']));
    return generated ? check(bin('typescript', 'bin/tsc'), ['--noEmit']) : failed('its types could not be generated');
  },
  unit: () => vitest('unit', SHARED),
  property: () => vitest('property', SHARED),
  'property-server': () => {
    const server = ensureLibsqlServer();
    if ('missing' in server)
      return Promise.resolve({ passed: 0, failed: 0, notes: [`not run against a libSQL server\n${server.missing}`] });
    // the config says which of them
    const files = ['tests/property/', 'tests/unit/'];
    return vitest('property', { ...SHARED, config: 'tests/vitest.server.config.ts', files, report: 'property-server' });
  },
  build: async () => {
    await buildWhatIsOld();
    const { lines, tooHeavy } = firstLoad();
    for (const line of lines) say(`first load  ${line}`);
    return tooHeavy.length === 0 ? PASSED : failed(`first-load JavaScript, gzipped\n${tooHeavy.join('\n')}`);
  },
  contract: () => {
    const programs = { 'against a libSQL server': ensureLibsqlServer(), 'in workerd': ensureWorkerd() };
    return withNotes(programs, vitest('contract', SHARED));
  },
  integration: () => vitest('integration', SHARED),
  ui: () => vitest('ui', SHARED),
  e2e: async () => {
    const missing = ensureChromium();
    return missing ? failed(missing) : browserTests();
  },
  faults: () => {
    const programs = { 'against a libSQL server': ensureLibsqlServer(), 'as functions of Vercel': ensureVercelCli() };
    return withNotes(programs, vitest('faults', PROCESSES));
  },
  // With everything else, the real Claude Code. Asked for by itself, the other agents too.
  agents: () => agentTests(CLAUDE_TESTS, []),
  'real-agents': () =>
    agentTests(
      undefined,
      Object.keys(REAL_AGENTS).filter((name) => !ON_REQUEST.has(name)),
    ),
  all: () => agentTests(undefined, Object.keys(REAL_AGENTS)),
};

/**
 * What runs beside what. Browsers and timers get into each other's way, so each has the machine for itself. Agents and
 * faults mostly wait, and what computes and has little to do with time fills that, and gives way to faults.
 */
const LANES = [
  [['lint', 'types', 'build', 'ui'], ['unit']],
  [['e2e']],
  [['agents'], ['contract']],
  [['integration']],
  [['faults'], ['property', 'property-server']],
];

const GIVE_WAY = new Set(['property', 'property-server']);

/** Stages in which nothing starts a dashboard. */
const WITHOUT_DASHBOARD = new Set(['lint', 'types', 'unit', 'property', 'property-server', 'build', 'ui']);

/**
 * @typedef {object} Tally
 * @property {number} passed
 * @property {number} failed
 * @property {string[]} [notes] what failed and how
 */
const PASSED = { passed: 1, failed: 0 };
const FAILED = { passed: 0, failed: 1 };

/**
 * Says what could not be run for want of a program.
 *
 * @param {Record<string, { program: string } | { missing: string }>} programs
 * @param {Promise<Tally>} running
 * @returns {Promise<Tally>}
 */
async function withNotes(programs, running) {
  const tally = await running;
  const notes = Object.entries(programs).flatMap(([where, found]) =>
    'missing' in found ? [`not run ${where}\n${found.missing}`] : [],
  );
  return { ...tally, notes: [...(tally.notes ?? []), ...notes] };
}

/** Which stage the code that runs belongs to, where several run at once. */
const lane = new AsyncLocalStorage();

async function run() {
  const named = process.argv.slice(2);
  // `npm run test:agents -- all` is `real-agents all`: all there are include those.
  const asked = named.includes('all') ? named.filter((name) => name !== 'real-agents') : named;
  const unknown = asked.filter((name) => !Object.hasOwn(STAGES, name));
  if (unknown.length > 0) {
    throw new LaunchError(`there is no stage "${unknown[0]}"; stages are ${Object.keys(STAGES).join(', ')}`, 2);
  }
  process.chdir(root);
  await installWhatIsMissing();
  // Files that start a dashboard at the same time would all build it, and one build at a time is possible.
  if (asked.some((name) => !WITHOUT_DASHBOARD.has(name))) await buildWhatIsOld();
  const startedAt = Date.now();
  const rows = [];
  for (const lanes of asked.length > 0 ? [[asked]] : LANES) {
    // What is installed is not waited for in mid-run; whether it could be, each stage says for itself.
    if (lanes.length > 1) for (const install of [ensureChromium, ensureAgentSdk]) await install();
    const ended = await Promise.all(lanes.map((names) => runInOrder(names, lanes.length > 1)));
    rows.push(...ended.flat());
  }
  report(rows, (Date.now() - startedAt) / 1_000);
}

/** @param {string} name */
function stageOf(name) {
  const stage = STAGES[name];
  if (stage === undefined) throw new Error(`there is no stage "${name}"`);
  return stage;
}

/**
 * @param {string[]} names
 * @param {boolean} beside whether others run at the same time: each line then says whose it is
 */
async function runInOrder(names, beside) {
  const rows = [];
  for (const name of names) {
    if (!beside) say(`\n── ${name} ${'─'.repeat(Math.max(2, 76 - name.length))}`);
    const startedAt = Date.now();
    const work = () => stageOf(name)().catch((error) => failed(String(error?.stack ?? error)));
    const tally = await (beside ? lane.run(name, work) : work());
    const seconds = (Date.now() - startedAt) / 1_000;
    if (beside) say(`── ${name}: ${tally.passed} passed, ${tally.failed} failed, ${seconds.toFixed(0)} s`);
    rows.push({ name, ...tally, seconds });
  }
  return rows;
}

/**
 * @param {(Tally & { name: string, seconds: number })[]} rows
 * @param {number} seconds
 */
function report(rows, seconds) {
  for (const { name, notes = [] } of rows) for (const note of notes) say(`\n── ${name}: ${note}`);
  say('');
  /** @type {(name: string, result: string, took: number) => void} */
  const line = (name, result, took) =>
    say(`  ${name.padEnd(12)} ${result.padEnd(28)} ${took.toFixed(1).padStart(6)} s`);
  for (const { name, passed, failed, seconds: took } of rows) {
    line(name, failed > 0 ? `${failed} failed, ${passed} passed` : `${passed} passed`, took);
  }
  line('', '', seconds);
  const sum = rows.reduce((all, row) => ({ passed: all.passed + row.passed, failed: all.failed + row.failed }), {
    passed: 0,
    failed: 0,
  });
  say(`\n${sum.passed} passed, ${sum.failed} failed`);
  process.exitCode = sum.failed > 0 ? 1 : 0;
}

/**
 * The tests of one folder, counted one by one. A run that fails without a failed test (a file that can't be loaded, an
 * unhandled rejection) counts as one failure.
 *
 * @param {string} folder
 * @param {{ config?: string, options?: string[], files?: string[], report?: string }} [settings] `files`: these of the
 *   folder only; `report`: what to call the report
 * @returns {Promise<Tally & { broken: string[], sound: number }>} the files in which something failed, and the tests
 *   that passed in the others
 */
async function vitest(
  folder,
  { config = 'tests/vitest.config.ts', options = [], files = [`tests/${folder}/`], report = folder } = {},
) {
  if (!existsSync(join(root, 'tests', folder))) return { ...failed(`there is no tests/${folder}`), ...NOTHING };
  const output = join(reports, `${report}.json`);
  rmSync(output, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${output}`];
  const args = ['run', ...files, '--config', config, ...options, ...reporters];
  const ok = await passes(bin('vitest', 'vitest.mjs'), args);
  if (!existsSync(output)) return { ...failed(`vitest wrote no report for tests/${folder}`), ...NOTHING };
  /** @type {{ numPassedTests: number, numFailedTests: number, testResults: FileResult[] }} */
  const { numPassedTests, numFailedTests, testResults } = JSON.parse(readFileSync(output, 'utf8'));
  const notes = testResults.flatMap(notesOf);
  if (!ok && notes.length === 0) notes.push(`failed, and no test of it did: see what it said above`);
  const broken = testResults.filter(({ status }) => status === 'failed');
  const sound = testResults.filter(({ status }) => status !== 'failed');
  return {
    passed: numPassedTests,
    failed: ok ? numFailedTests : Math.max(numFailedTests, 1),
    notes,
    broken: broken.map(({ name }) => relative(root, name)),
    sound: sound.flatMap(({ assertionResults }) => assertionResults).filter(({ status }) => status === 'passed').length,
  };
}

const NOTHING = { broken: [], sound: 0 };

/**
 * @param {string[] | undefined} files
 * @param {string[]} names of the agents besides Claude Code
 * @returns {Promise<Tally>}
 */
async function agentTests(files, names) {
  const sdk = await ensureAgentSdk();
  if ('missing' in sdk) return failed(sdk.missing);
  process.env.INTERLUDE_CLAUDE_SDK_DIR = sdk.folder;
  const { folder, missing } = await ensureRealAgents(names);
  if (names.length > 0) process.env.INTERLUDE_TEST_AGENTS_DIR = folder;
  const tally = await vitest('agents', { ...PROCESSES, ...(files === undefined ? {} : { files }) });
  const notes = missing.map((why) => `not run\n${why}`);
  return { ...tally, notes: [...notes, ...(tally.notes ?? [])] };
}

/**
 * Browsers on a busy machine. A file in which something failed is run once more, by itself and from nothing; what
 * passes then is no failure, but told at the end: it wants looking at.
 *
 * @returns {Promise<Tally>}
 */
async function browserTests() {
  const config = 'tests/vitest.e2e.config.ts';
  const first = await vitest('e2e', { config });
  if (first.failed === 0 || first.broken.length === 0) return first;
  const again = await vitest('e2e', { config, files: first.broken });
  const before = first.notes?.map((note) => `at the first try ${note}`) ?? [];
  return { passed: first.sound + again.passed, failed: again.failed, notes: [...before, ...(again.notes ?? [])] };
}

/**
 * A file of vitest's own report, as far as it is read.
 *
 * @typedef {object} FileResult
 * @property {string} name its whole path
 * @property {string} status
 * @property {string} message
 * @property {{ fullName: string, status: string, failureMessages: string[] }[]} assertionResults
 */

/**
 * @param {FileResult} file
 * @returns {string[]}
 */
function notesOf({ name, status, message, assertionResults }) {
  const file = relative(root, name);
  const tests = assertionResults.filter((test) => test.status === 'failed');
  if (tests.length === 0 && status === 'failed') return [`${file} failed\n${message}`];
  return tests.map((test) => `${file} > ${test.fullName} failed\n${test.failureMessages.join('\n')}`);
}

/**
 * @param {string} script
 * @param {string[]} args
 */
async function check(script, args) {
  return (await passes(script, args)) ? PASSED : failed('see what it said above');
}

/** @param {string} why */
function failed(why) {
  return { ...FAILED, notes: [`failed\n${why}`] };
}

/**
 * A program out of a package, without npx in between.
 *
 * @param {string} name
 * @param {string} file
 */
function bin(name, file) {
  return join(root, 'node_modules', name, file);
}

/**
 * @param {string} script
 * @param {string[]} args
 * @returns {Promise<boolean>}
 */
function passes(script, args) {
  return new Promise((resolve) => {
    const name = lane.getStore();
    // A group of its own: what the stage has started ends with it.
    /** @type {import('node:child_process').StdioOptions} */
    const stdio = name === undefined ? 'inherit' : ['ignore', 'pipe', 'pipe'];
    const child = spawn(process.execPath, [script, ...args], { cwd: root, stdio, detached: true });
    for (const stream of [child.stdout, child.stderr]) {
      if (stream) createInterface({ input: stream }).on('line', (line) => say(`${name?.padEnd(11)} │ ${line}`));
    }
    if (name !== undefined && GIVE_WAY.has(name) && child.pid) giveWay(child.pid);
    running.add(child);
    const limit = setTimeout(() => {
      process.stderr.write(`ended after ${STAGE_LIMIT_MS / 1_000} s\n`);
      kill(child);
    }, STAGE_LIMIT_MS);
    child.once('exit', (code) => {
      clearTimeout(limit);
      running.delete(child);
      kill(child);
      resolve(code === 0);
    });
    child.once('error', () => resolve(false));
  });
}

/**
 * Leaves the processor to whatever else wants it, as does all that the process starts from now on.
 *
 * @param {number} pid of a process that was started `detached`
 */
function giveWay(pid) {
  const { PRIORITY_LOW } = constants.priority;
  try {
    setPriority(pid, PRIORITY_LOW);
    // Linux weighs the sessions of processes against each other, and within each its processes.
    writeFileSync(`/proc/${pid}/autogroup`, String(PRIORITY_LOW));
  } catch {
    // it has ended, or this system has no such groups
  }
}

/**
 * What is under way, each the head of a process group.
 *
 * @type {Set<import('node:child_process').ChildProcess>}
 */
const running = new Set();

/** @param {import('node:child_process').ChildProcess} child */
function kill(child) {
  // It could not be started.
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // all of it is gone already
  }
}

for (const name of ['SIGINT', 'SIGTERM']) {
  process.once(name, () => {
    for (const child of running) kill(child);
    process.exit(130);
  });
}

try {
  await run();
} catch (error) {
  giveUp(error);
} finally {
  rmSync(reports, { recursive: true, force: true });
}
