/**
 * `npm test` runs the first tier, `npm run test:all` both, `npm test -- unit e2e` stages by name, and `npm test --
 * changed [base]` the tests that a change can affect. Every stage runs regardless of other failures, except stages that
 * need a failed build. Failures are repeated at the end; the last line is the sum.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { installIfMissing, packagesAreInstalled } from '../lib/launch/install.mjs';
import { exitWithError, LaunchError, printLine } from '../lib/launch/launch-error.mjs';
import { root } from '../lib/launch/paths.mjs';
import { affectedBy, changedFiles } from './changed.mjs';
import { INSTALLS, install, isInstalled } from './installs.mjs';
import { endAll } from './run-script.mjs';
import { failure, PASSED, runFor, runVitest } from './run-stage.mjs';
import { filesOf, misplacedHere, STAGES } from './stages.mjs';
import { firstLoad } from './support/first-load.mjs';
import { agentsFolder, ensureRealAgents, installedAgents, REAL_AGENTS, sdkFolder } from './support/real-agents.mjs';

/**
 * @typedef {import('./stages.mjs').Stage} Stage
 * @typedef {import('./run-stage.mjs').Tally} Tally
 * @typedef {import('./run-stage.mjs').Job} Job
 * @typedef {Tally & { job: Job, seconds: number }} Row
 */

const OUR_CODE = ['app', 'components', 'lib', 'db', 'instrumentation.ts', 'next.config.ts', 'proxy.ts'];

/** Large and not an agent: only with `npm run test:agents -- all`. */
const ON_REQUEST = 'copilotkit';

/**
 * Stages other than vitest with a list of files.
 *
 * @type {Record<string, (job: Job) => Promise<Tally>>}
 */
const OWN_WAY = {
  async lint(job) {
    const misplaced = misplacedHere();
    if (misplaced.length > 0) return failure(misplaced.join('\n'));
    const results = [
      await runFor(job, [bin('@biomejs/biome', 'bin/biome'), 'check', '.']),
      await runFor(job, [bin('oxlint', 'bin/oxlint'), 'app', 'components']),
      await runFor(job, [bin('oxlint', 'bin/oxlint'), '-c', '.oxlintrc.imports.json', ...OUR_CODE]),
      await runFor(job, [bin('knip', 'bin/knip.js'), '--no-progress']),
    ];
    return results.every(Boolean) ? PASSED : failure('see its output above');
  },
  async types(job) {
    // Next generates the types of styles and images, missing in a fresh clone.
    const hasTypes = existsSync(join(root, 'next-env.d.ts'));
    if (!hasTypes && !(await runFor(job, [bin('next', 'dist/bin/next'), 'typegen']))) {
      return failure('next typegen failed; see its output above');
    }
    const known = join('node_modules', '.cache', 'interlude.tsbuildinfo');
    return await check(job, [bin('typescript', 'bin/tsc'), '--noEmit', '--tsBuildInfoFile', known]);
  },
  async build(job) {
    // In its own process, to measure its CPU time.
    const script = "import('./lib/launch/build.mjs').then((it) => it.buildIfStale())";
    const built = await check(job, ['--input-type=module', '--eval', script]);
    if (built.failed > 0) return built;
    const { lines, tooHeavy } = firstLoad();
    for (const line of lines) printLine(`${job.name.padEnd(11)} │ first load  ${line}`);
    if (tooHeavy.length === 0) return PASSED;
    return { ...failure(`first-load JavaScript, gzipped\n${tooHeavy.join('\n')}`), isBuilt: true };
  },
  async mutants(job) {
    await runFor(job, [join(root, 'tests', 'mutants', 'run.mjs')]);
    const [, killed, failed] = /^(\d+) passed, (\d+) failed$/.exec(job.lastLine) ?? [];
    if (killed === undefined) return failure('see its output above');
    return { passed: Number(killed), failed: Number(failed), notes: failed === '0' ? [] : ['see its output above'] };
  },
  async agents(job) {
    const there = installedAgents();
    const missing = Object.keys(REAL_AGENTS).filter((name) => !there.includes(name));
    if (missing.length > 0) job.leftOut.push(`real agents (${missing.join(', ')}): npm run test:agents -- all`);
    job.env = { INTERLUDE_CLAUDE_SDK_DIR: sdkFolder() };
    if (there.length > 0) job.env.INTERLUDE_TEST_AGENTS_DIR = agentsFolder();
    return await testFiles(job);
  },
  e2e: browserFiles,
  'e2e-all': browserFiles,
};

/** @param {Job} job */
async function testFiles(job, files = job.files) {
  // Without files, vitest would run every test.
  if (files.length === 0) return { ...failure('there is no test file'), broken: [] };
  return await runVitest(job, files, { ...job.stage, isRelated: job.isRelated });
}

/**
 * Reruns failed files once. A test that then passes is flaky, which also fails the run.
 *
 * @param {Job} job
 */
async function browserFiles(job) {
  const tally = await testFiles(job);
  if (tally.broken.length === 0 || job.isRelated) return tally;
  const again = await testFiles(job, tally.broken);
  const flaky = tally.broken.filter((file) => !again.broken.includes(file));
  return {
    ...tally,
    notes: [...tally.notes, ...flaky.map((file) => `flaky: ${file} failed, and passed when run again`)],
  };
}

/**
 * @param {Job} job
 * @param {readonly string[]} args
 */
async function check(job, args) {
  return (await runFor(job, args)) ? PASSED : failure('see its output above');
}

async function run() {
  process.chdir(root);
  const [named = 'first', ...more] = process.argv.slice(2);
  if (named === 'changed') return await runJobs(changedJobs(more[0]), 'changed');
  if (named === 'real-agents') await installAgents(more.includes('all'));
  const stages = stagesNamed(named, more);
  if (named === 'soak') process.env.INTERLUDE_TEST_SCALE = 'soak';
  await runJobs(
    stages.map((stage) => jobOf(stage)),
    named,
  );
}

/**
 * @param {string} named
 * @param {readonly string[]} more
 */
function stagesNamed(named, more) {
  const groups = {
    first: STAGES.filter(({ tier }) => tier === 'first'),
    all: STAGES,
    rest: STAGES.filter(({ tier }) => tier === 'second'),
    soak: STAGES.filter(({ soaks }) => soaks),
    'real-agents': STAGES.filter(({ name }) => name === 'agents'),
  };
  if (Object.hasOwn(groups, named)) return groups[/** @type {keyof typeof groups} */ (named)];
  return [named, ...more].map((name) => {
    const stage = STAGES.find((one) => one.name === name);
    if (stage) return stage;
    const names = [...STAGES.map((one) => one.name), 'all', 'rest', 'soak', 'changed'];
    throw new LaunchError(`unknown stage "${name}"; stages: ${names.join(', ')}`, 2);
  });
}

/** @returns {Job} */
function jobOf(/** @type {Stage} */ stage, files = filesOf(stage), isRelated = false) {
  return { name: stage.name, stage, files, isRelated, cpuSeconds: 0, lastLine: '', leftOut: [] };
}

/** @param {string | undefined} base */
function changedJobs(base) {
  const { files, since } = changedFiles(base);
  const counted = ['Nothing has', '1 file has'][files.length] ?? `${files.length} files have`;
  printLine(`${counted} changed since ${since}.`);
  const affected = affectedBy(files);
  const stages = STAGES.filter(({ tier }) => tier === 'first');
  if (affected === 'everything') return stages.map((stage) => jobOf(stage));
  const { sources, tests } = affected;
  return stages.flatMap((stage) => {
    // The build runs if another stage needs it.
    if (!stage.files) return files.length > 0 && stage.name !== 'build' ? [jobOf(stage)] : [];
    const named = filesOf(stage).filter((file) => tests.includes(file));
    // Browser tests import only test support, not the pages.
    const related = stage.name === 'e2e' ? sources.filter((file) => file.startsWith('tests/support/')) : sources;
    const chosen = [...new Set([...related, ...named])];
    return chosen.length > 0 ? [jobOf(stage, chosen, related.length > 0)] : [];
  });
}

/**
 * @param {readonly Job[]} jobs
 * @param {string} asked
 */
async function runJobs(jobs, asked) {
  const startedAt = Date.now();
  const installs = [...new Set(jobs.flatMap(({ stage }) => stage.installs ?? []))];
  announce(installs, jobs);
  await installIfMissing();
  const failures = await install(installs);
  const builds = jobs.some(({ stage }) => stage.needsBuild) && !jobs.some(({ name }) => name === 'build');
  const build = STAGES.find(({ name }) => name === 'build');
  const all = builds && build ? [jobOf(build), ...jobs] : jobs;
  /** @type {Promise<Row> | undefined} */
  let building;
  /** @param {readonly Job[]} lane */
  const runLane = async (lane) => {
    const rows = [];
    for (const job of lane) {
      // `tsc` reads types that the build writes.
      const built =
        job.name === 'build' ? undefined : await (job.stage.needsBuild || job.name === 'types' ? building : null);
      const running = built && built.failed > 0 && !built.isBuilt && job.stage.needsBuild ? noBuild(job) : runJob(job);
      if (job.name === 'build') building = running;
      rows.push(await running);
    }
    return rows;
  };
  const lanes = ['browser', 'compute', 'wait'].map((name) => all.filter(({ stage }) => stage.lane === name));
  const rows = (await Promise.all(lanes.map(runLane))).flat();
  rows.push(...(await runLane(all.filter(({ stage }) => stage.lane === 'last'))));
  for (const row of rows) {
    for (const name of row.job.stage.installs ?? []) {
      const why = failures.get(name);
      if (why === undefined) continue;
      const lack = `without ${INSTALLS[name]?.what}: ${why.split('\n')[0]}`;
      row.job.leftOut.push(`${row.job.name} ${lack}`);
      // Tests that need the missing program were skipped, which must not pass in continuous integration.
      if (!process.env.CI) continue;
      row.failed += 1;
      row.notes.push(lack);
    }
  }
  report(rows, asked, (Date.now() - startedAt) / 1_000);
}

/** @param {Job} job @returns {Promise<Row>} */
async function noBuild(job) {
  return { job, ...failure('not run: the build failed'), seconds: 0 };
}

/** @param {Job} job @returns {Promise<Row>} */
async function runJob(job) {
  const startedAt = Date.now();
  const work = OWN_WAY[job.name] ?? testFiles;
  const tally = await work(job).catch((error) => failure(String(error?.stack ?? error)));
  const seconds = (Date.now() - startedAt) / 1_000;
  printLine(`── ${job.name}: ${tally.passed} passed, ${tally.failed} failed, ${seconds.toFixed(0)} s`);
  return { job, ...tally, seconds };
}

/**
 * Announces what this run will install.
 *
 * @param {readonly string[]} installs
 * @param {readonly Job[]} jobs
 */
function announce(installs, jobs) {
  if (!packagesAreInstalled())
    printLine('Installs the packages of package-lock.json into node_modules (npm ci, about 750 MB).');
  for (const name of installs) {
    const entry = INSTALLS[name];
    if (entry && !isInstalled(name))
      printLine(`Installs ${entry.what} (about ${entry.megabytes} MB${placeOf(entry.folder)}).`);
  }
  if (jobs.some(({ stage }) => stage.needsBuild))
    printLine('Builds the dashboard into .next, unless the build there is current.');
  if (jobs.some(({ name }) => name === 'faults' || name === 'e2e-all'))
    printLine('Builds it again for a base path into .next-beneath.');
}

/** @param {string | undefined} folder */
const placeOf = (folder) => (folder ? ` in node_modules/.cache/${folder}` : '');

/** @param {boolean} withAll */
async function installAgents(withAll) {
  const names = Object.keys(REAL_AGENTS).filter((name) => withAll || name !== ON_REQUEST);
  const wanted = names.filter((name) => !installedAgents().includes(name));
  const megabytes = wanted.reduce((sum, name) => sum + (REAL_AGENTS[name]?.megabytes ?? 0), 0);
  if (wanted.length > 0) printLine(`Installs ${wanted.join(', ')} into ${agentsFolder()} (about ${megabytes} MB).`);
  const { missing } = await ensureRealAgents(names);
  if (missing.length > 0) throw new LaunchError(`not installed: ${missing.join('; ')}`, 1);
}

/**
 * @param {readonly Row[]} rows
 * @param {string} asked
 * @param {number} seconds
 */
function report(rows, asked, seconds) {
  for (const { job, notes } of rows) for (const note of notes) printLine(`\n── ${job.name}: ${note}`);
  const order = STAGES.map(({ name }) => name);
  const sorted = [...rows].sort((a, b) => order.indexOf(a.job.name) - order.indexOf(b.job.name));
  printLine(`\n  ${'stage'.padEnd(18)} ${'tests'.padEnd(30)} ${'CPU'.padStart(8)} ${'wall'.padStart(8)}`);
  /** @type {(name: string, tests: string, cpu: number, wall: number) => void} */
  const line = (name, tests, cpu, wall) =>
    printLine(
      `  ${name.padEnd(18)} ${tests.padEnd(30)} ${cpu.toFixed(0).padStart(6)} s ${wall.toFixed(0).padStart(6)} s`,
    );
  const sum = { passed: 0, failed: 0, skipped: 0, cpuSeconds: 0 };
  for (const { job, passed, failed, skipped = 0, seconds: took } of sorted) {
    line(job.name, counts(passed, failed, skipped), job.cpuSeconds, took);
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped += skipped;
    sum.cpuSeconds += job.cpuSeconds;
  }
  line('all', counts(sum.passed, sum.failed, sum.skipped), sum.cpuSeconds, seconds);
  const leftOut = rows.flatMap(({ job }) => job.leftOut);
  const second = STAGES.filter(({ tier }) => tier === 'second').map(({ name, why }) => `${name}: ${why}`);
  if (asked === 'first') leftOut.push(...second, 'npm run test:all runs these.');
  if (asked === 'all' || asked === 'rest') leftOut.push('hours of each fault, property and agent: npm run test:soak');
  if (asked === 'changed')
    leftOut.push('what the change cannot affect, and the second tier: npm test, npm run test:all');
  if (leftOut.length > 0) printLine('\n  left out:');
  for (const each of leftOut) printLine(`  ${each}`);
  printLine(`\n${sum.passed} passed, ${sum.failed} failed`);
  process.exitCode = sum.failed > 0 ? 1 : 0;
}

/**
 * @param {number} passed
 * @param {number} failed
 * @param {number} skipped
 */
function counts(passed, failed, skipped) {
  const parts = [failed > 0 && `${failed} failed`, `${passed} passed`, skipped > 0 && `${skipped} skipped`];
  return parts.filter(Boolean).join(', ');
}

/**
 * A program of a package, without npx.
 *
 * @param {string} name
 * @param {string} file
 */
function bin(name, file) {
  return join(root, 'node_modules', name, file);
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    endAll();
    process.exit(130);
  });
}

try {
  await run();
} catch (error) {
  exitWithError(error);
}
