import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from '../lib/launch/paths.mjs';

/**
 * All test stages in the order of the printed table.
 *
 * `npm test` runs the first tier, `npm run test:all` both. The file name determines the tier: `x.test.ts` is in the
 * first, `x.all.test.ts` and everything in tests/faults and tests/agents in the second, except tests/faults/attack,
 * which is in the first. Stages of a lane run sequentially, lanes in parallel, and `last` runs alone after all others.
 *
 * @typedef {object} Stage
 * @property {string} name
 * @property {'first' | 'second'} tier
 * @property {'compute' | 'browser' | 'wait' | 'last'} lane
 * @property {RegExp} [files] files of this stage
 * @property {boolean} [again] reruns other stages' files under different conditions
 * @property {string} [config]
 * @property {number} [workers] parallel files
 * @property {boolean} [isolated] separate modules per file
 * @property {boolean} [needsBuild]
 * @property {readonly string[]} [installs] names in tests/installs.mjs
 * @property {boolean} [soaks] has a long form
 * @property {string} [why] description in the list of skipped stages
 */

/** @param {string} folder */
const first = (folder) => new RegExp(`^tests/${folder}/(.+/)?[^./]+\\.test\\.tsx?$`);
/** @param {string} folder */
const second = (folder) => new RegExp(`^tests/${folder}/(.+/)?[^./]+\\.all\\.test\\.tsx?$`);
/** @param {string} folder */
const every = (folder) => new RegExp(`^tests/${folder}/(.+/)?[^/]+\\.test\\.tsx?$`);

const FAULTS = /^tests\/faults\/[^/]+\.test\.ts$/;

const E2E = 'tests/vitest.e2e.config.ts';
const PROCESSES = 'tests/vitest.faults.config.ts';
const SERVER = 'tests/vitest.server.config.ts';

/** Property tests with a database. */
const ON_SERVER = [
  ...['commands', 'ingest-exactly-once', 'ingest-read-models', 'log-level', 'ownership', 'retention', 'stream'].map(
    (name) => `tests/property/${name}.test.ts`,
  ),
  'tests/unit/retention/remove-history.test.ts',
];

/** @type {readonly Stage[]} */
export const STAGES = [
  { name: 'lint', tier: 'first', lane: 'compute' },
  { name: 'types', tier: 'first', lane: 'compute' },
  { name: 'build', tier: 'first', lane: 'browser' },
  { name: 'unit', tier: 'first', lane: 'compute', files: first('unit'), workers: 2 },
  { name: 'ui', tier: 'first', lane: 'compute', files: first('ui'), workers: 2 },
  { name: 'property', tier: 'first', lane: 'compute', files: first('property'), workers: 2 },
  { name: 'contract', tier: 'first', lane: 'wait', files: first('contract'), needsBuild: true, workers: 2 },
  { name: 'integration', tier: 'first', lane: 'wait', files: first('integration'), needsBuild: true, workers: 2 },
  {
    ...{ name: 'attack', tier: 'first', lane: 'wait', files: every('faults/attack'), config: PROCESSES, workers: 1 },
    ...{ needsBuild: true, isolated: true, soaks: true },
  },
  {
    ...{ name: 'e2e', tier: 'first', lane: 'browser', files: first('e2e'), config: E2E, workers: 2 },
    ...{ needsBuild: true, isolated: true, installs: ['chromium'] },
  },
  {
    ...{ name: 'hosts', tier: 'second', lane: 'wait', files: second('contract'), needsBuild: true, workers: 2 },
    ...{ installs: ['libsql-server', 'workerd', 'prism'] },
    why: 'the contract on a libSQL server, per request, in workerd, with next start, beside another version, and through Prism',
  },
  {
    ...{ name: 'faults', tier: 'second', lane: 'wait', files: FAULTS, config: PROCESSES, workers: 2 },
    ...{ needsBuild: true, isolated: true, soaks: true, installs: ['libsql-server', 'vercel', 'proxies'] },
    why: 'process kills, stalls, full disks and malformed input; proxies, container, Vercel',
  },
  {
    ...{ name: 'integration-all', tier: 'second', lane: 'compute', files: second('integration'), workers: 2 },
    ...{ needsBuild: true, soaks: true, installs: ['libsql-server', 'agent-sdk', 'docs'] },
    why: 'the long integration tests',
  },
  {
    ...{ name: 'e2e-all', tier: 'second', lane: 'browser', files: second('e2e'), config: E2E, workers: 2 },
    ...{ needsBuild: true, isolated: true, installs: ['chromium', 'proxies', 'engines'] },
    why: 'every width, theme and page with axe; below a path; Firefox and WebKit; rare and slow flows',
  },
  {
    ...{ name: 'agents', tier: 'second', lane: 'browser', files: every('agents'), config: PROCESSES, workers: 2 },
    ...{ needsBuild: true, isolated: true, soaks: true, installs: ['agent-sdk', 'chromium'] },
    why: 'the real Claude Code, and the other real agents where they are installed',
  },
  {
    ...{ name: 'properties', tier: 'second', lane: 'compute', again: true, workers: 2, soaks: true },
    why: 'every property with all of its runs and a fresh seed',
  },
  {
    ...{ name: 'properties-server', tier: 'second', lane: 'wait', again: true, config: SERVER },
    ...{ workers: 1, soaks: true, installs: ['libsql-server'] },
    why: 'the properties of the database over a libSQL server',
  },
  // A timeout counts as killed, so a busy machine could kill a mutant by mistake.
  { name: 'mutants', tier: 'second', lane: 'last', why: 'removes one guard at a time; a test must fail' },
  {
    ...{ name: 'unit-all', tier: 'second', lane: 'last', files: second('unit'), workers: 1 },
    installs: ['libsql-server'],
    why: 'units with limits of time and cost',
  },
  {
    ...{ name: 'ui-all', tier: 'second', lane: 'last', files: second('ui'), workers: 1 },
    why: 'page parts with limits of time and cost',
  },
];

/**
 * Scripts in these folders, relative to the root.
 *
 * @param {string[]} folders
 */
export function scripts(...folders) {
  return folders
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && /\.(ts|tsx|mts|js|mjs)$/.test(entry.name))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .sort();
}

/**
 * Test files claimed by no stage or by several, with those stages.
 *
 * @param {readonly { path: string, text: string }[]} files
 * @param {readonly Stage[]} [stages]
 * @returns {{ path: string, stages: string[] }[]}
 */
export function misplacedTests(files, stages = STAGES) {
  return files
    .filter(({ path, text }) => isTest(path, text))
    .map(({ path }) => ({ path, stages: stages.filter((stage) => stage.files?.test(path)).map(({ name }) => name) }))
    .filter((found) => found.stages.length !== 1);
}

/**
 * True for a test file by name, or if it defines tests and exports nothing.
 *
 * @param {string} path
 * @param {string} text
 */
function isTest(path, text) {
  if (/\.(test|spec|soak)\.\w+$/.test(path)) return true;
  return /^(describe|test|it)(\.\w+)*\(/m.test(text) && !/^export /m.test(text);
}

/** Lists misplaced test files of this checkout, one per line. */
export function misplacedHere() {
  const files = scripts('tests', 'app', 'components', 'db', 'lib').map((path) => ({
    path,
    text: readFileSync(join(root, path), 'utf8'),
  }));
  return misplacedTests(files).map(({ path, stages }) =>
    stages.length === 0
      ? `${path} is in no tier: name it x.test.ts or x.all.test.ts in a folder of tests/stages.mjs`
      : `${path} is in ${stages.join(' and ')}: a test file belongs to one stage`,
  );
}

/**
 * The files of a stage.
 *
 * @param {Stage} stage
 * @returns {string[]}
 */
export function filesOf(stage) {
  const { files } = stage;
  if (files) return scripts('tests').filter((path) => files.test(path));
  if (stage.name === 'properties-server') return [...ON_SERVER];
  if (stage.name !== 'properties') return [];
  const homes = STAGES.filter(({ name }) => name === 'unit' || name === 'ui' || name === 'property');
  return homes.flatMap(filesOf).filter((path) => readFileSync(join(root, path), 'utf8').includes("from 'fast-check'"));
}
