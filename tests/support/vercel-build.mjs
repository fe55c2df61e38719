/**
 * What `vercel build` makes of this project, offline, for the tests that run its functions. The CLI is 350 MB large, so it
 * is installed into a folder of its own, and only for them.
 */
import { execFile, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../../lib/launch/paths.mjs';

const VERSION = '64.0.2';
const LIMIT_MS = 900_000;

/** What a project's settings would say, were it linked to one. */
const PROJECT = {
  projectId: 'prj_test',
  orgId: 'team_test',
  settings: { framework: 'nextjs', installCommand: 'true', nodeVersion: '20.x' },
};

/** What only concerns other copies: builds, what was installed beside the packages, history. */
const LEFT_OUT = new Set(['.git', '.next', '.next-beneath', '.vercel', '.interlude', '.cache']);

/** @returns {{ program: string } | { missing: string }} */
export function ensureVercelCli() {
  const folder = join(root, 'node_modules', '.cache', 'interlude-vercel');
  const program = join(folder, 'node_modules', 'vercel', 'dist', 'vc.js');
  if (existsSync(program)) return { program };
  mkdirSync(folder, { recursive: true });
  // its sandboxes are of no use here, and the version it asks for is not everywhere
  const overrides = { sandbox: 'npm:@vercel/error-utils@2.2.1' };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, overrides }));
  process.stdout.write(`installing vercel@${VERSION} into ${folder}\n`);
  const args = ['install', `vercel@${VERSION}`, '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error'];
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
  const { stderr, error } = spawnSync(npm, args, { cwd: folder, encoding: 'utf8', timeout: LIMIT_MS });
  if (existsSync(program)) return { program };
  const why = (error?.message ?? stderr ?? '').trim().split('\n').slice(-3).join('; ');
  return { missing: `vercel@${VERSION} can't be installed (${why})` };
}

/**
 * Builds a copy of the project, as Vercel would: `vercel.json` says how.
 *
 * @param {Record<string, string>} env as set in the project's settings there
 * @returns {Promise<{ folder: string, config: any, functionOf(name: string): string, remove(): void }>} `functionOf` gives
 *   the launcher of a function that stands by itself
 */
export async function buildForVercel(env) {
  const cli = ensureVercelCli();
  if ('missing' in cli) throw new Error(cli.missing);
  const folder = mkdtempSync(join(tmpdir(), 'interlude-vercel-'));
  const source = join(folder, 'project');
  linkAll(root, source);
  // as Vercel keeps it between deployments: the build takes less than half the time
  const cache = join(root, '.next', 'cache');
  if (existsSync(cache)) cpSync(cache, join(source, '.next', 'cache'), { recursive: true });
  mkdirSync(join(source, '.vercel'));
  writeFileSync(join(source, '.vercel', 'project.json'), JSON.stringify(PROJECT));
  const options = {
    cwd: source,
    timeout: LIMIT_MS,
    maxBuffer: 64 * 1024 * 1024,
    env: {
      ...process.env,
      NODE_ENV: /** @type {const} */ ('production'),
      VERCEL: '1',
      VERCEL_TELEMETRY_DISABLED: '1',
      NO_UPDATE_NOTIFIER: '1',
      HOME: folder,
      ...env,
    },
  };
  const args = [cli.program, 'build', '--yes', '--token', 'none', '--cwd', source];
  await promisify(execFile)(process.execPath, args, options).catch(({ message, stdout, stderr }) => {
    throw new Error(`vercel build failed: ${message}\n${stdout}\n${stderr}`);
  });
  const output = join(source, '.vercel', 'output');
  const made = join(folder, 'functions');
  return {
    folder: output,
    config: JSON.parse(readFileSync(join(output, 'config.json'), 'utf8')),
    functionOf(name) {
      const target = join(made, name);
      if (!existsSync(target)) standAlone(join(output, 'functions', `${name}.func`), target, source);
      return join(target, '___next_launcher.cjs');
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/**
 * Gives a function the files that it shares with others.
 *
 * @param {string} from
 * @param {string} to
 * @param {string} source
 */
function standAlone(from, to, source) {
  cpSync(from, to, { recursive: true, dereference: true });
  const { filePathMap } = JSON.parse(readFileSync(join(from, '.vc-config.json'), 'utf8'));
  for (const [at, file] of Object.entries(filePathMap)) {
    const path = join(to, at);
    if (existsSync(path)) continue;
    mkdirSync(dirname(path), { recursive: true });
    symlinkSync(join(source, file), path);
  }
}

/**
 * A copy whose files are the same ones: builders follow no link out of the project.
 *
 * @param {string} from
 * @param {string} to
 */
function linkAll(from, to) {
  mkdirSync(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (LEFT_OUT.has(entry.name) && !from.includes('node_modules')) continue;
    if (entry.name === '.cache') continue;
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) linkAll(source, target);
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else if (entry.isFile()) linkOrCopy(source, target);
  }
}

/**
 * @param {string} source
 * @param {string} target
 */
function linkOrCopy(source, target) {
  try {
    linkSync(source, target);
  } catch {
    // on another disk
    copyFileSync(source, target);
  }
}
