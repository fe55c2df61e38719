import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../lib/launch/root.mjs';
import { LaunchError } from '../lib/launch/say.mjs';

/**
 * What a change can affect: `vitest related` follows imports, and the table below names the tests that reach a path in
 * another way: through a browser, in a process of their own, or by reading the file.
 */

/** A change of these can break any test. */
const EVERYTHING = [
  /^package(-lock)?\.json$/,
  /^tsconfig\.json$/,
  /^tests\/(vitest\.|run|stages|installs|fixtures\/)/,
  /^\.ci\//,
];

/**
 * Browser tests by the parts of a page that they look at. A first line names those for parts of every page.
 *
 * @type {Record<string, string>}
 */
const PARTS = {
  '(app/(layout|globals|page-nonce)|components/(ui|live)/|proxy|instrumentation)':
    'layout words hostile live-is-reloaded offline one-connection keyboard widths-and-themes rows-stay hover',
  '(app/(\\(dashboard\\)/)?(page|sessions)|components/sessions/)':
    'session-list session-state rows-stay keyboard runner-gone accessible-names failures',
  'components/(transcript|obligations)/':
    'live-is-reloaded follow-tail long-session large-transcript words other-kinds head-is-shown ownership',
  'components/requests/': 'shown-is-run not-meant head-is-shown other-kinds calls',
  'components/composer/': 'composer attachments interruption not-meant offline',
  'components/inbox/': 'inbox failures',
  'components/agents/': 'board failures ownership accessible-names',
  'components/(logs|time-lock)/': 'log-viewer log-level time-lock follow-tail',
  'components/tasks/': 'task-output other-kinds',
  '(components/settings/|app/.*settings)': 'settings',
  '(components/embed/|app/\\(embed\\)|public/embed|lib/access/embed)': 'embed',
  '(lib/access/|app/sign|app/.*signed-out|lib/server/routes)': 'sign-in-link newcomer settings embed',
  '(lib/(fan-out|event-log|queries|ingest|projections|redaction)|db)/':
    'live-is-reloaded session-state inbox one-connection',
  'lib/(commands|log-store|webhook)/': 'composer interruption log-level inbox',
  'lib/(launch|runner/(cli|hooks|install|demo))/': 'first-commands newcomer',
  '(README.md|docs/)': 'first-commands',
};

/**
 * Other tests, by the programs they start and the files they read.
 *
 * @type {Record<string, string>}
 */
const PROGRAMS = {
  'lib/protocol/(PROTOCOL|GLOSSARY).md':
    'unit/protocol/protocol-page unit/server/routes unit/runner/conformance-doc unit/adapters/ownership-rules',
  'docs/(conformance|kinds/)': 'unit/runner/conformance-doc unit/runner/kinds-table',
  'docs/grafana/': 'unit/telemetry/metrics',
  'db/migrations/':
    'unit/db/client unit/db/state-migration contract/ingest contract/read-models property/ingest-read-models',
  'lib/launch/':
    'integration/launch integration/server-file integration/start-database integration/data-folder contract/live',
  'lib/runner/(cli|hooks|logger|outbox|conformance)/':
    'integration/command-line integration/hook-script integration/hooks-companion integration/outbox-operations integration/conformance',
  '(app/api|lib/server/|lib/access/|proxy|next.config)': 'contract/live integration/canary',
  'tests/mutants/': 'unit/mutants',
  'components/': 'unit/ui/browser-imports unit/ui/over-the-page',
};

/** @type {(prefix: string, table: Record<string, string>) => [path: RegExp, tests: string[]][]} */
const lines = (prefix, table) =>
  Object.entries(table).map(([path, tests]) => [
    new RegExp(`^${path}`),
    tests.split(' ').map((name) => `tests/${prefix}${name}.test.ts`),
  ]);

/** @type {readonly (readonly [path: RegExp, tests: readonly string[]])[]} */
export const REACHES = [...lines('e2e/', PARTS), ...lines('', PROGRAMS)];

/**
 * @param {string} [base] a commit; by default HEAD, or the commit before it where nothing has changed since
 * @returns {{ files: string[], since: string }} paths from the root
 */
export function changedFiles(base) {
  const since = base ?? (changedSince('HEAD').length > 0 ? 'HEAD' : 'HEAD~1');
  return { files: changedSince(since), since };
}

/** @param {string} base */
function changedSince(base) {
  return [
    ...git('diff', '--name-only', '--relative', base, '--'),
    ...git('ls-files', '--others', '--exclude-standard'),
  ];
}

/** @param {string[]} args */
function git(...args) {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new LaunchError(`git ${args.join(' ')} failed: ${stderr?.trim().split('\n')[0]}`, 2);
  return stdout.split('\n').filter(Boolean);
}

/**
 * @param {readonly string[]} files paths from the root
 * @returns {'everything' | { sources: string[], tests: string[] }} `sources`: for `vitest related`; `tests`: named by
 *   the table
 */
export function affectedBy(files) {
  if (files.some((file) => EVERYTHING.some((pattern) => pattern.test(file)))) return 'everything';
  const sources = files.filter((file) => /\.(ts|tsx|mjs|css|json)$/.test(file) && existsSync(join(root, file)));
  const reached = REACHES.flatMap(([path, tests]) => (files.some((file) => path.test(file)) ? tests : []));
  // A test file that has changed runs, too.
  const tests = [...reached, ...files.filter((file) => /\.test\.tsx?$/.test(file))];
  return { sources, tests: [...new Set(tests)] };
}
