import { dirname, join, normalize, relative } from 'node:path';

/**
 * Import rules as an Oxlint plugin. Each room lists what it may import; everything else is an error, by any path and
 * kind of import. Files within a room may import each other.
 *
 * A file's room is the longest entry that prefixes its path, so a single file can be a room; `*` matches one folder.
 * `node:` means all of Node.
 */
/** A specifier known only at run time. */
const COMPUTED = 'a computed name';

const REACT = ['react', 'react-dom', 'next', 'clsx', 'lucide', 'radix-ui', '@tanstack'];
const LIBSQL = ['@libsql/client', 'drizzle-orm'];

/** @type {Record<string, string[]>} */
export const MAY_IMPORT = {
  'lib/protocol': ['zod'],
  // Its hashes are for servers, not for browsers or pure code.
  'lib/protocol/request-digest': ['lib/protocol', '@noble/hashes'],
  'lib/protocol/redaction': ['lib/protocol'],
  'lib/runner/adapters': ['lib/protocol'],
  'lib/protocol/projections': ['lib/protocol', 're2js'],
  db: ['lib/protocol', ...LIBSQL, '@libsql/hrana-client', 'libsql', 'drizzle-kit', '#open-file'],
  'lib/server/access': [
    'lib/server/access/oidc',
    'lib/server/telemetry/telemetry',
    'lib/server/webhook/webhook-settings',
    'lib/protocol/redaction',
    'lib/protocol',
    'db',
    ...LIBSQL,
    '@noble/hashes',
  ],
  // The only room that contacts identity providers.
  'lib/server/access/oidc': ['lib/server/access', 'lib/protocol', 'jose', 'openid-client'],
  // Stored attachments, for the commands that write and the queries that read them.
  'lib/server/attachments': ['lib/protocol', 'lib/server/access', 'db', ...LIBSQL],
  // The only outbound request that carries agent or operator text.
  'lib/server/post-redacted': ['lib/protocol', 'lib/protocol/redaction'],
  'lib/server/event-log': ['lib/protocol', 'db', ...LIBSQL],
  'lib/server/ingest': [
    'lib/protocol',
    'lib/server/telemetry/telemetry',
    'lib/protocol/request-digest',
    'lib/protocol/projections',
    'lib/server/event-log',
    'lib/server/access',
    'db',
    ...LIBSQL,
    'zod',
  ],
  'lib/server/commands': [
    'lib/protocol',
    'lib/protocol/request-digest',
    'lib/server/ingest',
    'lib/server/attachments',
    'lib/server/access',
    'db',
    ...LIBSQL,
    'zod',
  ],
  'lib/server/fan-out': [
    'lib/protocol',
    'lib/server/telemetry/telemetry',
    'lib/protocol/redaction',
    'lib/server/event-log',
    'lib/server/access',
    'db',
    ...LIBSQL,
  ],
  'lib/server/webhook': [
    'lib/protocol',
    'lib/protocol/redaction',
    'lib/server/webhook/webhook-settings',
    'lib/server/post-redacted',
    'lib/server/access',
    'db',
    ...LIBSQL,
  ],
  'lib/server/webhook/webhook-settings': ['lib/protocol'],
  // Telemetry of the server's work.
  'lib/server/telemetry': [
    'lib/server/telemetry/telemetry',
    'lib/protocol',
    'lib/protocol/redaction',
    'lib/server/post-redacted',
    'lib/server/access',
    'db',
    ...LIBSQL,
    '@noble/hashes',
    '#process-metrics',
  ],
  'lib/server/telemetry/telemetry': [],
  'lib/server/log-store': ['lib/protocol', 'lib/protocol/projections', 'lib/server/access', 'db', ...LIBSQL],
  'lib/server/retention': ['lib/protocol', 'lib/server/ingest', 'lib/server/access', 'db', ...LIBSQL],
  'lib/server/queries': [
    'lib/protocol',
    'lib/protocol/redaction',
    'lib/protocol/projections',
    'lib/server/attachments',
    'lib/server/access',
    'db',
    ...LIBSQL,
    'zod',
  ],
  'lib/server/agui': [
    'lib/protocol',
    'lib/protocol/request-digest',
    'lib/protocol/projections',
    'lib/server/ingest',
    'lib/server/commands',
    'lib/server/fan-out',
    'lib/server/queries',
    'lib/server/access',
    'db',
    ...LIBSQL,
  ],
  'lib/server': [
    'lib/protocol',
    'lib/protocol/redaction',
    'lib/server/agui',
    'lib/server/ingest',
    'lib/server/event-log',
    'lib/server/commands',
    'lib/server/fan-out',
    'lib/server/log-store',
    'lib/server/retention',
    'lib/server/webhook/webhook-settings',
    'lib/server/webhook',
    'lib/server/telemetry',
    'lib/server/telemetry/telemetry',
    'lib/server/queries',
    'lib/server/access',
    'lib/server/access/oidc',
    'db',
    'zod',
    'hono',
    '#process-metrics',
  ],
  'lib/runner': [
    'lib/protocol',
    'lib/protocol/request-digest',
    'lib/protocol/redaction',
    'lib/runner/adapters',
    'lib/protocol/projections',
    '@libsql/client',
    'eventsource-parser',
    'jsonc-parser',
    'zod',
    'node:',
  ],
  // Checks for third-party servers and runners, and for ours.
  'lib/conformance': [
    'lib/runner',
    'lib/runner/adapters',
    'lib/protocol',
    'lib/protocol/request-digest',
    'lib/protocol/projections',
    'eventsource-parser',
    'node:',
  ],
  'lib/launch': [
    'lib/launch/typescript',
    'lib/server',
    'lib/protocol',
    'lib/server/access',
    'lib/runner',
    'next',
    '@hono/node-server',
    'node:',
  ],
  // TypeScript by path.
  'lib/launch/typescript': ['lib/launch', 'tsx', 'node:', COMPUTED],
  // Runs at build time with everything available.
  'lib/launch/pack.mjs': ['lib/launch', 'lib/protocol', 'next', 'esbuild', 'node:'],
  'lib/launch/packages.mjs': ['lib/launch', 'lib/launch/pack.mjs', 'lib/runner', 'node:'],
  'lib/runner/cli/interlude-runner.mjs': ['lib/launch/typescript'],
  // Operator commands with direct database access.
  'lib/server/maintenance': ['lib/protocol', 'lib/server/access', 'lib/runner', 'db', ...LIBSQL, 'node:'],
  'components/ui': [
    'lib/protocol',
    ...REACT,
    'decode-named-character-reference',
    'micromark-util-decode-numeric-character-reference',
    'marked',
    'remend',
    'lowlight',
    'highlight.js',
    'hast',
  ],
  'components/access': ['components/ui', ...REACT],
  'components/live': [
    'lib/protocol',
    'lib/protocol/projections',
    'components/access',
    'components/ui',
    ...REACT,
    'eventsource-parser',
  ],
  'components/*': [
    'lib/protocol',
    'lib/protocol/projections',
    'components/access',
    'components/ui',
    'components/live',
    ...REACT,
    'diff',
  ],
  app: [
    'lib/protocol',
    'lib/protocol/redaction',
    'lib/server',
    'lib/server/ingest',
    'lib/server/commands',
    'lib/server/fan-out',
    'lib/server/log-store',
    'lib/server/queries',
    'lib/server/access',
    'components/*',
    'components/access',
    'components/ui',
    'components/live',
    ...REACT,
    'geist',
  ],
  '.': ['app', 'lib/protocol', 'lib/server', 'lib/server/access', 'next'],
};

/**
 * Additional imports of single files and folders. Server rooms run without Node, except where they open files.
 *
 * @type {Record<string, string[]>}
 */
const MAY_BESIDES = {
  'next.config.ts': ['lib/launch'],
  'db/database-file.ts': ['node:'],
  'db/open-file.ts': ['node:'],
  'lib/server/access/command-place.ts': ['node:path'],
  // types only
  'lib/server/access/incoming-headers.mjs': ['node:http', 'next'],
  'lib/server/access/response-headers.mjs': ['node:http'],
  // Next under Node without the front door
  'lib/server/run-server.ts': ['node:'],
  'lib/server/telemetry/process-metrics.ts': ['prom-client'],
  // Loads the user's installed SDK.
  'lib/runner/sources/claude/claude-sdk.ts': [COMPUTED],
  'lib/runner/mcp': ['@modelcontextprotocol/sdk'],
  // Node has no WebSocket client for Unix sockets.
  'lib/runner/sources/codex/app-server.ts': ['ws'],
  'components/agents': ['components/sessions', 'components/logs'],
  // Loaded on demand, outside every page's bundle.
  'components/inbox/notices.ts': ['lib/protocol/redaction'],
  'components/inbox': ['components/sessions', 'components/requests', 'components/obligations', 'components/tasks'],
  'components/settings': ['components/inbox'],
  'components/tasks': ['components/sessions'],
  'components/transcript': ['components/sessions', 'components/requests'],
};

/**
 * The parts of the syntax tree and linter API in use.
 *
 * @typedef {object} Node
 * @property {string} [type]
 * @property {unknown} [value]
 * @property {Node | null} [source]
 * @property {Node} [expression]
 * @property {{ name?: string }} [callee]
 * @property {Node[]} [arguments]
 * @property {{ value: { cooked: string } }[]} [quasis]
 *
 * @typedef {object} Context
 * @property {string} cwd
 * @property {string} filename
 * @property {(fault: { node: Node, message: string }) => void} report
 * @property {{ getAllComments(): { value: string }[] }} sourceCode
 */

const rooms = {
  meta: { type: 'problem' },
  /** @param {Context} context */
  create(context) {
    const file = relative(context.cwd, context.filename);
    const own = roomOf(file);
    const besides = Object.keys(MAY_BESIDES).filter((place) => isIn(file, place));
    const may = [...(MAY_IMPORT[own?.rule ?? ''] ?? []), ...besides.flatMap((place) => MAY_BESIDES[place] ?? [])];

    /**
     * @param {Node} node
     * @param {string} name
     */
    function judge(node, name) {
      const ours = name.replace(/^@interlude\//, '@/lib/');
      const isOurs = /^(@\/|\.|\/)/.test(ours);
      const path = !isOurs ? name : ours.startsWith('@/') ? normalize(ours.slice(2)) : join(dirname(file), ours);
      const room = isOurs ? roomOf(path) : null;
      const isAllowed = isOurs
        ? room !== null && (room.name === own?.name || may.includes(room.name) || may.includes(room.rule))
        : may.some((one) => name === one || name.startsWith(one === 'node:' ? one : `${one}/`));
      if (!isAllowed) {
        context.report({ node, message: `${file} may not import ${path}; see tests/import-rules.mjs` });
      }
    }
    const bySource = (/** @type {Node} */ node) => node.source && judge(node, nameIn(node.source));
    return {
      ImportDeclaration: bySource,
      ExportNamedDeclaration: bySource,
      ExportAllDeclaration: bySource,
      ImportExpression: bySource,
      TSImportType: bySource,
      TSExternalModuleReference: (/** @type {Node} */ node) => judge(node, nameIn(node.expression)),
      CallExpression: (/** @type {Node} */ node) =>
        node.callee?.name === 'require' && judge(node, nameIn(node.arguments?.[0])),
      // JavaScript imports types in comments.
      /** @param {Node} node */
      Program(node) {
        for (const { value } of context.sourceCode.getAllComments()) {
          for (const [, name] of value.matchAll(/\bimport\(['"]([^'"]+)['"]\)/g)) judge(node, name ?? COMPUTED);
        }
      },
    };
  },
};

/**
 * @param {string} path
 * @returns {{ name: string, rule: string } | null} null outside every room
 */
function roomOf(path) {
  if (!path.includes('/')) return { name: '.', rule: '.' };
  const rules = Object.keys(MAY_IMPORT).filter((one) => isIn(path, one));
  const length = (/** @type {string} */ rule) => rule.replace('*', '').length;
  const rule = rules.sort((one, other) => length(other) - length(one))[0];
  if (rule === undefined) return null;
  const depth = rule.split('/').length;
  return { rule, name: rule.includes('*') ? path.split('/', depth).join('/') : rule };
}

/**
 * @param {string} path
 * @param {string} place a folder, or a file with or without its extension
 */
function isIn(path, place) {
  const parts = place.split('/');
  const own = path.split('/', parts.length);
  return parts.every((part, index) => part === '*' || part === own[index] || own[index]?.startsWith(`${part}.`));
}

/** @param {Node | null | undefined} source */
function nameIn(source) {
  if (typeof source?.value === 'string') return source.value;
  return source?.quasis?.length === 1 ? (source.quasis[0]?.value.cooked ?? COMPUTED) : COMPUTED;
}

export default { meta: { name: 'imports' }, rules: { rooms } };
