import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../lib/launch/paths.mjs';
import { ensureLibsqlServer } from './support/libsql-server.mjs';
import { ensurePrism } from './support/prism.mjs';
import {
  chromiumPath,
  debianProgram,
  ensureChromium,
  ensureDebianProgram,
  ensureDocsSite,
  hasDocsSite,
} from './support/programs.mjs';
import { ensureAgentSdk } from './support/real-agents.mjs';
import { ensureVercelCli } from './support/vercel-build.mjs';
import { ensureWorkerd } from './support/workerd.mjs';

/**
 * Programs that some stages need besides the packages of package.json: Debian packages, and packages installed into
 * node_modules/.cache.
 *
 * @typedef {object} Install
 * @property {string} what
 * @property {number} megabytes on disk
 * @property {string} [folder] below node_modules/.cache
 * @property {() => boolean} [isThere] for installs without a folder
 * @property {() => unknown} ensure installs it if missing; on failure returns `missing` or a text
 */

const PROXIES = { nginx: 'nginx-light', caddy: 'caddy', 'docker-compose': 'docker-compose', openssl: 'openssl' };
const ENGINES = { 'firefox-esr': 'firefox-esr', WebKitWebDriver: 'webkit2gtk-driver', Xvfb: 'xvfb' };

/**
 * @param {string} what
 * @param {number} megabytes
 * @param {Record<string, string>} packages by program
 * @returns {Install}
 */
const byAptGet = (what, megabytes, packages) => ({
  ...{ what: `${what}, by apt-get`, megabytes },
  isThere: () => Object.keys(packages).every((name) => debianProgram(name) !== undefined),
  ensure: () =>
    Object.entries(packages)
      .map(([name, packageName]) => ensureDebianProgram(name, packageName))
      .find((found) => 'missing' in found) ?? null,
});

/** @type {Record<string, Install>} */
export const INSTALLS = {
  chromium: {
    ...{ what: "Debian's Chromium, by apt-get", megabytes: 310, ensure: ensureChromium },
    isThere: () => chromiumPath() !== null,
  },
  'agent-sdk': { what: 'the Claude Agent SDK', megabytes: 430, folder: 'interlude-agents', ensure: ensureAgentSdk },
  'libsql-server': {
    ...{ what: 'a libSQL server', megabytes: 45, folder: 'interlude-libsql-server', ensure: ensureLibsqlServer },
  },
  workerd: { what: 'workerd', megabytes: 160, folder: 'interlude-workerd', ensure: ensureWorkerd },
  prism: { what: 'the Prism proxy', megabytes: 90, folder: 'interlude-prism', ensure: ensurePrism },
  proxies: byAptGet('nginx, Caddy, docker-compose and openssl', 150, PROXIES),
  engines: byAptGet('Firefox, WebKit and a virtual display', 550, ENGINES),
  docs: { what: 'VitePress, in docs/node_modules', megabytes: 102, isThere: hasDocsSite, ensure: ensureDocsSite },
  vercel: { what: 'the Vercel CLI', megabytes: 350, folder: 'interlude-vercel', ensure: ensureVercelCli },
};

/** @param {string} name */
export function isInstalled(name) {
  const { folder, isThere } = INSTALLS[name] ?? {};
  return folder ? existsSync(join(root, 'node_modules', '.cache', folder, 'node_modules')) : isThere?.() === true;
}

/**
 * Installs the missing ones.
 *
 * @param {readonly string[]} names
 * @returns {Promise<Map<string, string>>} why the others can't be installed
 */
export async function install(names) {
  const failures = new Map();
  for (const name of names) {
    const result = await INSTALLS[name]?.ensure();
    const why = typeof result === 'object' && result !== null && 'missing' in result ? result.missing : result;
    if (typeof why === 'string') failures.set(name, why);
  }
  return failures;
}
