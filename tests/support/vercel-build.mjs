/**
 * Runs `vercel build` offline for tests of the functions. The 350 MB CLI is installed on demand into its own folder.
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

/** Settings of a linked project. */
const PROJECT = {
  projectId: 'prj_test',
  orgId: 'team_test',
  settings: { framework: 'nextjs', installCommand: 'true', nodeVersion: '20.x' },
};

/** Excluded from the copy: builds, caches, data, history. */
const LEFT_OUT = new Set(['.git', '.next', '.next-beneath', '.vercel', '.interlude', '.cache']);

/** @returns {{ program: string } | { missing: string }} */
export function ensureVercelCli() {
  const folder = join(root, 'node_modules', '.cache', 'interlude-vercel');
  const program = join(folder, 'node_modules', 'vercel', 'dist', 'vc.js');
  if (existsSync(program)) return { program };
  mkdirSync(folder, { recursive: true });
  // the sandbox package isn't needed and isn't available everywhere
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
 * Builds a copy of the project as Vercel does, following `vercel.json`.
 *
 * @param {Record<string, string>} env environment variables of the Vercel project
 * @returns {Promise<{ folder: string, config: any, functionOf(name: string): string, remove(): void }>} `functionOf`
 *   returns
 *   a self-contained function's launcher
 */
export async function buildForVercel(env) {
  const cli = ensureVercelCli();
  if ('missing' in cli) throw new Error(cli.missing);
  const folder = mkdtempSync(join(tmpdir(), 'interlude-vercel-'));
  const source = join(folder, 'project');
  linkAll(root, source);
  // kept between deployments on Vercel too; halves the build time
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
 * Copies a function's shared files into it.
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
 * Copies with hard links, because builders don't follow symlinks out of the project.
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
    // on another file system
    copyFileSync(source, target);
  }
}
