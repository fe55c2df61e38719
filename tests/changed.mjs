import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { LaunchError } from '../lib/launch/launch-error.mjs';
import { root } from '../lib/launch/paths.mjs';

/**
 * Selects the tests that a change can affect: `vitest related` follows imports, and the tables below add tests that
 * reach a path in other ways: through a browser, in a separate process, or by reading the file.
 */

/** A change to these files can break any test. */
const EVERYTHING = [
  /^package(-lock)?\.json$/,
  /^tsconfig\.json$/,
  /^tests\/(vitest\.|run|stages|installs|fixtures\/)/,
  /^\.ci\//,
];

/**
 * Browser tests by path prefix.
 *
 * @type {readonly (readonly [paths: string[], tests: string])[]}
 */
const PARTS = [
  [
    ['layout', 'globals', 'page-nonce', 'not-found', 'global-error', 'icon'].map((name) => `app/${name}`),
    'layout hostile keyboard navigation phone widths-and-themes hover accessible-names',
  ],
  [
    [
      ...['layout', 'shell', 'nav', 'more-', 'sidebar-tools', 'background', 'back-link', 'page-', 'error'],
      ...['read-in-turn', 'when-idle-part'],
    ].map(inConsole),
    'layout keyboard navigation widths-and-themes',
  ],
  [
    [
      'components/ui/',
      'components/live/',
      'proxy.ts',
      'instrumentation.ts',
      'next.config',
      'postcss.config',
      'public/',
    ],
    'layout hostile live-is-reloaded offline one-connection keyboard widths-and-themes rows-stay hover browser-state',
  ],
  [['preview-body', 'session-preview', 'open-requests'].map(inConsole), 'home-preview board'],
  [[...['page.tsx', 'welcome', 'help'].map(inConsole), 'app/provider-name'], 'board newcomer rows-stay keyboard'],
  [
    [...['sessions/', 'session-liveness'].map(inConsole), 'components/sessions/'],
    'session-list home-preview session-state rows-stay keyboard runner-gone accessible-names failures',
  ],
  [
    ['components/transcript/', 'components/obligations/', inConsole('sessions/')],
    'live-is-reloaded follow-tail long-session large-transcript widths-and-themes other-kinds head-is-shown ownership',
  ],
  [
    ['components/requests/', inConsole('render-request')],
    'shown-is-run not-meant head-is-shown other-kinds calls phone',
  ],
  [['components/composer/'], 'composer attachments live-is-reloaded not-meant offline'],
  [['components/inbox/', inConsole('inbox')], 'inbox failures phone'],
  [['components/agents/', inConsole('agents/')], 'board failures ownership accessible-names navigation'],
  [
    ['components/logs/', 'components/time-lock/', inConsole('agents/[agentId]/logs/')],
    'log-viewer log-level time-lock follow-tail',
  ],
  [['components/tasks/'], 'task-output other-kinds'],
  [['components/settings/', 'components/access/', inConsole('settings')], 'settings appearance'],
  [['components/embed/', 'app/(embed)/', 'public/embed', 'lib/server/access/embed'], 'embed'],
  [
    ['lib/server/access/', 'app/sign-', 'app/signed-out', 'lib/server/routes', 'components/access/'],
    'sign-in-link newcomer settings embed browser-state',
  ],
  [
    ['app/api/', 'app/healthz', 'app/metrics', 'app/readyz', 'lib/protocol/', 'lib/server/', 'db/'],
    'live-is-reloaded session-state inbox one-connection',
  ],
  [
    ['lib/server/commands/', 'lib/server/log-store/', 'lib/server/webhook/'],
    'composer live-is-reloaded log-level inbox',
  ],
  [['lib/server/retention/', 'lib/server/maintenance/'], 'settings'],
  [['lib/launch/', 'lib/runner/', 'lib/server/agui/'], 'first-commands newcomer'],
  [['README.md', 'docs/'], 'first-commands'],
];

/**
 * Other tests by the programs they start and the files they read.
 *
 * @type {readonly (readonly [paths: string[], tests: string])[]}
 */
const PROGRAMS = [
  [
    ['lib/protocol/PROTOCOL.md', 'lib/protocol/GLOSSARY.md'],
    'unit/protocol/protocol-page unit/server/routes unit/runner/conformance-doc unit/adapters/ownership-rules',
  ],
  [['docs/conformance', 'docs/kinds/'], 'unit/runner/conformance-doc unit/runner/kinds-table'],
  [['docs/', 'SECURITY.md', 'README.md', 'CONTRIBUTING.md', 'lib/'], 'unit/pages-of-docs unit/security-page'],
  [['docs/grafana/'], 'unit/telemetry/metrics'],
  [['db/migrations/'], 'unit/db/client unit/db/state-migration contract/in-process property/ingest-read-models'],
  [['lib/launch/'], 'integration/launch integration/server-file integration/data-folder contract/live'],
  [
    [...['cli', 'hooks', 'logger', 'outbox'].map((room) => `lib/runner/${room}/`), 'lib/conformance/'],
    'integration/command-line integration/hook-script integration/hooks-companion integration/outbox-operations integration/conformance',
  ],
  [['app/api/', 'lib/server/', 'proxy.ts', 'next.config'], 'contract/live integration/canary'],
  [['app/', 'lib/server/', 'lib/launch/', 'proxy.ts'], 'faults/attack/pages faults/attack/raw-http'],
  [['tests/mutants/'], 'unit/mutants'],
  [['components/'], 'unit/ui/browser-imports unit/ui/over-the-page'],
];

/** @param {string} path */
function inConsole(path) {
  return `app/(console)/${path}`;
}

/** @type {(folder: string, table: typeof PARTS) => { paths: string[], tests: string[] }[]} */
const reaches = (folder, table) =>
  table.map(([paths, tests]) => ({
    paths,
    tests: tests.split(' ').map((name) => `tests/${folder}${name}.test.ts`),
  }));

export const REACHES = [...reaches('e2e/', PARTS), ...reaches('', PROGRAMS)];

/**
 * @param {string} [base] a commit; default: HEAD, or its parent if nothing has changed since
 * @returns {{ files: string[], since: string }} paths relative to the root
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
  const everything = [...EVERYTHING, ...setUpFiles()];
  if (files.some((file) => everything.some((pattern) => pattern.test(file)))) return 'everything';
  const sources = files.filter((file) => /\.(ts|tsx|mjs|css|json)$/.test(file) && existsSync(join(root, file)));
  const isBelow = (/** @type {string[]} */ paths) => files.some((file) => paths.some((path) => file.startsWith(path)));
  const reached = REACHES.flatMap(({ paths, tests }) => (isBelow(paths) ? tests : []));
  // A changed test file runs itself.
  const tests = [...reached, ...files.filter((file) => /\.test\.tsx?$/.test(file))];
  return { sources, tests: [...new Set(tests)] };
}

/** Setup files of the vitest configurations. No test file imports them. */
function setUpFiles() {
  const folder = join(root, 'tests');
  const configs = readdirSync(folder).filter((name) => name.startsWith('vitest.'));
  return configs.flatMap((name) =>
    [...readFileSync(join(folder, name), 'utf8').matchAll(/support\/[\w-]+/g)].map(
      ([path]) => new RegExp(`^tests/${path}\\.`),
    ),
  );
}
