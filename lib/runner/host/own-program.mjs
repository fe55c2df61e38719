import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, delimiter, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { shellWord } from '../../protocol/shell-word.mjs';

/**
 * Our program and its commands, in a form that works wherever the reader pastes them. Plain JavaScript without
 * packages, because `npm start` needs it before they are installed.
 */

const root = fileURLToPath(new URL('../../..', import.meta.url)).replace(/[/\\]$/, '');

/** @type {{ name: string, version: string, bin?: Record<string, string> }} */
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const [programName = '', programFile = ''] = Object.entries(manifest.bin ?? {})[0] ?? [];

/** True where npm installed us as a package, which `npx` runs from its cache. */
export const isInstalled = root.split(sep).includes('node_modules');

/** Absolute path, because agents start the program from other folders. */
export const ownProgram = join(root, programFile);

export const RUNNER_VERSION = manifest.version;

/**
 * Resolves a folder named in the environment, never against the working directory: a project may have a folder of the
 * same name.
 *
 * @param {string} path relative to Interlude's folder; of an installed package, to the home folder
 */
export function resolveOwnFolder(path) {
  return resolve(isInstalled ? homedir() : root, path);
}

/**
 * The data directory, by INTERLUDE_DATA_DIR.
 *
 * @param {Record<string, string | undefined>} env
 */
export function dataFolder(env) {
  return resolveOwnFolder(env.INTERLUDE_DATA_DIR || '.interlude');
}

/**
 * `npm run --prefix` starts a script in the project and passes the caller's folder in INIT_CWD. Child processes inherit the
 * variable, so it counts only in the process that npm started.
 *
 * @param {Record<string, string | undefined>} env
 * @param {string} cwd
 * @returns {string} the folder that relative paths of the caller refer to
 */
export function callerFolder(env, cwd) {
  const isByNpm = /^(interlude|start)$/.test(env.npm_lifecycle_event ?? '') && isRoot(cwd);
  if (!isByNpm || !env.INIT_CWD || !isRoot(dirname(env.npm_package_json ?? ''))) return cwd;
  return existsSync(env.INIT_CWD) ? env.INIT_CWD : cwd;
}

/** Read at the start, because `npm start` changes to the project's folder. */
export const callerCwd = callerFolder(process.env, process.cwd());

/**
 * @typedef {object} Reader where a printed command is read, and how our program was called there
 * @property {string} folder
 * @property {string} [program] the called path
 * @property {string} [path] the shell's PATH
 */

/** Read at the start, because the process later changes or removes it. */
const { INTERLUDE_DATA_DIR } = process.env;

/** @type {Reader} */
const here = { folder: callerCwd, program: process.argv[1], path: process.env.PATH };

/** Commands that `@interlude/runner` lacks. */
const DASHBOARD_ONLY = /^(?:start|demo|tokens|sign-in|db|conformance)$/;

/**
 * @param {readonly string[]} args
 * @param {Record<string, string | undefined>} [env] the variables that the command needs are printed before it
 * @param {Reader} [reader]
 */
export function interludeCommand(args, env = { INTERLUDE_DATA_DIR }, reader = here) {
  const folder = env.INTERLUDE_DATA_DIR;
  const setting = folder ? `INTERLUDE_DATA_DIR=${shellWord(folder)} ` : '';
  return `${setting}${ownCommand(args, reader)}`;
}

/** @param {readonly string[]} args @param {Reader} reader */
function ownCommand(args, reader) {
  const [name = '', ...rest] = args;
  // In a clone, `interlude-runner` is the program of a workspace.
  const isRunner = manifest.name !== 'interlude' || /^interlude-runner(?:\.mjs)?$/.test(basename(reader.program ?? ''));
  if (isRunner && DASHBOARD_ONLY.test(name)) return ['npx', 'interlude', ...args].map(shellWord).join(' ');
  const own = isRunner && name === 'runner' ? rest : args;
  if (isOnPath(reader)) return [programName, ...own].map(shellWord).join(' ');
  // In a clone npx runs the project's own program.
  const npxName = isRunner && !isInstalled ? 'interlude-runner' : manifest.name;
  if (isInstalled || isRoot(reader.folder)) return ['npx', npxName, ...own].map(shellWord).join(' ');
  return npmCommand(['run', '-s', 'interlude', '--', ...args], reader);
}

/**
 * The command that starts the dashboard.
 *
 * @param {readonly string[]} [options]
 */
export function startCommand(options = []) {
  if (isInstalled) return interludeCommand(['start', ...options]);
  return npmCommand(options.length === 0 ? ['start'] : ['start', '--', ...options]);
}

/**
 * A command for agents, which run it from any folder.
 *
 * @param {readonly string[]} args
 */
export function agentCommand(args) {
  const setting = INTERLUDE_DATA_DIR ? `INTERLUDE_DATA_DIR=${shellWord(INTERLUDE_DATA_DIR)} ` : '';
  return `${setting}node ${[ownProgram, ...args].map(shellWord).join(' ')}`;
}

/** Registers the MCP server with Claude Code. */
export function mcpAddCommand() {
  return mcpCommands()['Claude Code'];
}

/**
 * Commands that register the MCP server, by agent. Agents start the server from any folder.
 *
 * @param {string | undefined} [dataDir]
 * @returns {Record<'Claude Code' | 'Codex' | 'OpenCode' | 'Gemini CLI' | 'Qwen Code', string>}
 */
export function mcpCommands(dataDir = INTERLUDE_DATA_DIR) {
  const server = `node ${shellWord(ownProgram)} mcp`;
  /** @param {string} flag */
  const setting = (flag) => (dataDir ? ` ${flag} ${shellWord(`INTERLUDE_DATA_DIR=${dataDir}`)}` : '');
  return {
    'Claude Code': `claude mcp add --scope user interlude${setting('-e')} -- ${server}`,
    Codex: `codex mcp add interlude${setting('--env')} -- ${server}`,
    OpenCode: `opencode mcp add interlude${setting('--env')} -- ${server}`,
    'Gemini CLI': `gemini mcp add --scope user${setting('-e')} interlude ${server}`,
    'Qwen Code': `qwen mcp add --scope user${setting('-e')} interlude ${server}`,
  };
}

/**
 * @param {readonly string[]} args of npm, in the project
 * @param {Reader} [reader]
 */
export function npmCommand(args, reader = here) {
  const place = isRoot(nearestProject(reader.folder)) ? [] : ['--prefix', root];
  return ['npm', ...place, ...args].map(shellWord).join(' ');
}

/**
 * @param {string} path
 * @param {string} [folder] where it is read
 * @returns {string} relative if it is below the folder, else absolute
 */
export function displayPath(path, folder = callerCwd) {
  const inner = relative(folder, path);
  return inner === '' || inner.startsWith(`..${sep}`) || inner === '..' || isAbsolute(inner) ? path : inner;
}

/**
 * The folder whose scripts npm runs.
 *
 * @param {string} folder
 */
function nearestProject(folder) {
  for (let path = folder; ; path = dirname(path)) {
    if (existsSync(join(path, 'package.json')) || existsSync(join(path, 'node_modules'))) return path;
    if (path === dirname(path)) return folder;
  }
}

/** npx and npm add their own `.bin` folders, which the reader's shell lacks. @param {Reader} reader */
function isOnPath({ program = '', path = '' }) {
  const folder = dirname(program);
  return basename(program) === programName && basename(folder) !== '.bin' && path.split(delimiter).includes(folder);
}

/** @param {string} folder */
function isRoot(folder) {
  try {
    return realpathSync(folder) === root;
  } catch {
    return false;
  }
}

/**
 * The npm that started this process, else the one on the PATH.
 *
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {{ program: string, args: string[] }} the program, and its arguments before npm's own
 */
export function npmProgram(env = process.env) {
  const started = env.npm_execpath ?? '';
  // pnpm and yarn set the variable too.
  return /^npm.*\.[cm]?js$/.test(basename(started))
    ? { program: process.execPath, args: [started] }
    : { program: 'npm', args: [] };
}
