import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { basename, delimiter, dirname, isAbsolute, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { shellWord } from '../../protocol/shell-word.mjs';

/**
 * Commands of ours as they are written for people: each runs as it is pasted where it is read. Plain JavaScript without a
 * package: `npm start` says some before there are any.
 */

const root = fileURLToPath(new URL('../../..', import.meta.url)).replace(/[/\\]$/, '');

/** Absolute path of our program, for agents that start it from other folders. */
export const ownProgram = join(root, 'lib', 'launch', 'interlude.mjs');

/** @type {string} */
export const RUNNER_VERSION = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version;

/**
 * `npm run` starts what it runs in the project, also when somebody called it elsewhere with `--prefix`: then the folder
 * in which they stand is in INIT_CWD. Only where npm started this very process: what that starts inherits the variable.
 *
 * @param {Record<string, string | undefined>} env
 * @param {string} cwd
 * @returns {string} the folder from which the paths that a person gives are meant
 */
export function readersFolder(env, cwd) {
  const isByNpm = /^(interlude|start)$/.test(env.npm_lifecycle_event ?? '') && isRoot(cwd);
  if (!isByNpm || !env.INIT_CWD || !isRoot(dirname(env.npm_package_json ?? ''))) return cwd;
  return existsSync(env.INIT_CWD) ? env.INIT_CWD : cwd;
}

/** Taken when the process starts: `npm start` goes to the project's folder by itself. */
export const readFrom = readersFolder(process.env, process.cwd());

/**
 * @typedef {object} Reader where a command is read, and how ours was called there
 * @property {string} folder
 * @property {string} [program] as it was called
 * @property {string} [path] where the shell looks for programs
 */

/** The data folder that was named to this process, before it names one to itself, or hides it. */
const { INTERLUDE_DATA_DIR } = process.env;

/** @type {Reader} */
const here = { folder: readFrom, program: process.argv[1], path: process.env.PATH };

/**
 * @param {readonly string[]} args
 * @param {Record<string, string | undefined>} [env] whatever of it the command needs is written before it
 * @param {Reader} [reader]
 */
export function interludeCommand(args, env = { INTERLUDE_DATA_DIR }, reader = here) {
  const folder = env.INTERLUDE_DATA_DIR;
  const setting = folder ? `INTERLUDE_DATA_DIR=${shellWord(folder)} ` : '';
  if (isOnPath(reader)) return `${setting}${['interlude', ...args].map(shellWord).join(' ')}`;
  return `${setting}${npmCommand(['run', '-s', 'interlude', '--', ...args], reader)}`;
}

/**
 * A command of ours for an agent to run, wherever it works: the program is named by its whole path.
 *
 * @param {readonly string[]} args
 */
export function agentCommand(args) {
  const setting = INTERLUDE_DATA_DIR ? `INTERLUDE_DATA_DIR=${shellWord(INTERLUDE_DATA_DIR)} ` : '';
  return `${setting}node ${[ownProgram, ...args].map(shellWord).join(' ')}`;
}

/** Registers the MCP server with Claude Code. */
export function mcpAddCommand() {
  return mcpLines()['Claude Code'];
}

/**
 * Commands that register the MCP server, by the agent's usual name. The agent starts the server itself, so the program has
 * its whole path.
 *
 * @param {string | undefined} [dataDir]
 * @returns {Record<'Claude Code' | 'Codex' | 'OpenCode' | 'Gemini CLI' | 'Qwen Code', string>}
 */
export function mcpLines(dataDir = INTERLUDE_DATA_DIR) {
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
 * @returns {string} relative where it is below, else absolute
 */
export function shownPath(path, folder = readFrom) {
  const inner = relative(folder, path);
  return inner === '' || inner.startsWith(`..${sep}`) || inner === '..' || isAbsolute(inner) ? path : inner;
}

/**
 * npm runs the scripts of the nearest folder that has packages.
 *
 * @param {string} folder
 */
function nearestProject(folder) {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, 'package.json')) || existsSync(join(at, 'node_modules'))) return at;
    if (at === dirname(at)) return folder;
  }
}

/** @param {Reader} reader */
function isOnPath({ program = '', path = '' }) {
  return basename(program) === 'interlude' && path.split(delimiter).includes(dirname(program));
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
 * The npm that started us, else the one on the PATH. Plain JavaScript without a package: `npm start` installs with it.
 *
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {{ program: string, args: string[] }} what to run, and what comes before npm's own arguments
 */
export function npmProgram(env = process.env) {
  const started = env.npm_execpath ?? '';
  // pnpm and yarn set the same variable
  return /^npm.*\.[cm]?js$/.test(basename(started))
    ? { program: process.execPath, args: [started] }
    : { program: 'npm', args: [] };
}
