import { fork } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { processState } from '../protocol/process-state.mjs';
import { checkDataFolder } from '../runner/host/data-folder.mjs';
import { displayPath, interludeCommand, isInstalled } from '../runner/host/own-program.mjs';
import { theServer } from '../server/process-server.mjs';
import { buildIfStale } from './build.mjs';
import { installIfMissing } from './install.mjs';
import { exitWithError, LaunchError, printLine } from './launch-error.mjs';
import { isTerminal, keepRunnerToken, runnerTokenFile, signInLines } from './local-credentials.mjs';
import { readOptions, START_HELP } from './options.mjs';
import { isPacked, root } from './paths.mjs';
import { probeIpv6Loopback, reservePort } from './port.mjs';
import { publishServerFile, runningServer } from './server-file.mjs';
import { handleSignals, ignoreOutputErrors, onOrphaned } from './shutdown.mjs';
import { readOrMakeLocalName, readOrMakeToken, secretsFromFiles } from './token.mjs';
import { loadTypescript } from './typescript.mjs';

/**
 * `npm start`: from a fresh checkout to a running dashboard. Plain JavaScript, because it runs before any package is
 * installed.
 *
 * Ordering: quick checks (options, Node, data folder, token, port) come before slow steps.
 */

/**
 * Maximum time to stop. Usually under two seconds, because responses get one (serve.mjs). A slow database gets longer to
 * close, but less than the 10 s after which Docker kills. Work that is cut off is either on disk or was never
 * acknowledged.
 */
const STOP_MS = 7_500;
const DEMO_STOP_MS = 2_000;

async function start() {
  ignoreOutputErrors();
  const options = readOptions(process.argv.slice(2), process.env);
  if (options.help) {
    printLine(START_HELP);
    return;
  }
  requireNode(20, 9);
  const shutdown = handleSignals();
  onOrphaned(() => shutdown.end('SIGTERM'));
  const { host, dataDir, basePath } = options;
  const reserved = await reservePort(host, options.port).catch((error) => {
    const url = runningServer(dataDir, options.port);
    if (url === null) throw error;
    const next = options.demo
      ? `add the demo fleet with: ${interludeCommand(['demo'])}`
      : 'open it, or set PORT to start another';
    throw new LaunchError(`port ${options.port} is in use on ${host}; Interlude is already running at ${url}; ${next}`);
  });
  checkDataFolder(dataDir);
  const ipv6 = await probeIpv6Loopback(host, reserved.port);
  const localName = ipv6 === 'taken' ? '' : readOrMakeLocalName(dataDir, process.env);
  const token = readOrMakeToken(dataDir, process.env);
  process.chdir(root);
  await installIfMissing();
  await buildIfStale(basePath);
  Object.assign(process.env, secretsFromFiles(process.env), {
    NODE_ENV: 'production',
    HOST: host,
    PORT: String(reserved.port),
    INTERLUDE_BASE_PATH: basePath,
    INTERLUDE_DATA_DIR: dataDir,
    INTERLUDE_TOKEN: token,
    INTERLUDE_LOCAL_NAME: localName,
    // read by pages that show shell commands
    INTERLUDE_RUNNER_TOKEN_FILE: runnerTokenFile(dataDir),
  });
  await migrateDatabase(process.env);
  processState().isLaunched = true;
  await offerAgentSearch();
  const { serve } = await import('./serve.mjs');
  const { url, close } = await serve(host, reserved, ipv6 === 'free', basePath);
  shutdown.setFinalWork(() => within(STOP_MS, stop(close)));
  const own = { url, token };
  await keepRunnerToken(dataDir, own);
  const signIn = await signInLines(own, isTerminal(process.stdout, process.env));
  const isLocalUrl = new URL(url).hostname === '127.0.0.1';
  const pages = localName !== '' && isLocalUrl ? url.replace('127.0.0.1', `${localName}.localhost`) : url;
  process.once('exit', publishServerFile(dataDir, url, pages));
  const redirect = pages === url ? '' : `  Browsers on this machine are redirected to ${pages}\n`;
  printLine(`\n  Interlude is at ${url}\n${signIn}\n${redirect}`);
  const { INTERLUDE_TOKEN: _, INTERLUDE_TOKEN_FILE: __, ...unowned } = process.env;
  const endDemo = options.demo ? startDemoFleet({ ...unowned, INTERLUDE_URL: url }, token) : null;
  // a container has no shell to run these commands in
  const next = isPacked && !isInstalled ? '' : nextCommands();
  printLine(endDemo ? '  The demo fleet is running. Press Ctrl-C to stop both.\n' : next);
  if (endDemo === null) return;
  shutdown.setFinalWork(async () => {
    // stops the demo first, while its sessions can still report their end, and with a time limit
    await within(DEMO_STOP_MS, endDemo());
    await within(STOP_MS, stop(close));
  });
}

/**
 * Ordering: stop accepting, end streams, answer open requests, then close the database. After the last write the
 * database file is self-contained and can be backed up alone.
 *
 * @param {() => Promise<void>} closeServer
 */
function stop(closeServer) {
  return theServer().close(closeServer());
}

/**
 * @param {number} ms
 * @param {Promise<unknown>} work
 */
function within(ms, work) {
  return Promise.race([work, new Promise((resolve) => setTimeout(resolve, ms))]);
}

/** Commands to paste in the folder in which `npm start` ran. */
function nextCommands() {
  /** @param {string[]} args */
  const ours = (...args) => `    ${interludeCommand(args)}`;
  const recording = displayPath(join(root, 'lib/runner/cli/demo/recordings/test-run.jsonl'));
  return [
    '  In another terminal, run Claude Code in a project:',
    `    mkdir -p ~/my-project && ${interludeCommand(['runner', 'claude', '--cwd'])} ~/my-project`,
    '  Or follow Claude Code sessions in your terminals:',
    ours('hooks', 'install'),
    ours('runner', 'hooks'),
    '  Or replay a recorded run:',
    ours('replay', recording),
    '  Or run a demo fleet:',
    ours('demo'),
    '  Press Ctrl-C to stop.\n',
  ].join('\n');
}

/**
 * Opens the database once before serving. This migrates it, and reports problems here in one line rather than in the
 * first request.
 *
 * @param {NodeJS.ProcessEnv} env
 */
async function migrateDatabase(env) {
  const { databaseOptions, openDatabase } = await loadTypescript('db/client.ts', { alone: true });
  const database = await openDatabase({ ...databaseOptions(env), migrates: true });
  await database.close();
}

/** @param {number} major @param {number} minor */
function requireNode(major, minor) {
  const [hasMajor = 0, hasMinor = 0] = process.versions.node.split('.').map(Number);
  if (hasMajor > major || (hasMajor === major && hasMinor >= minor)) return;
  throw new LaunchError(`Node ${process.versions.node} is too old; install ${major}.${minor} or newer`, 3);
}

start().catch(exitWithError);

const MAX_RESTART_DELAY_MS = 30_000;
const program = fileURLToPath(new URL('./interlude.mjs', import.meta.url));

/**
 * Runs the demo fleet in its own process, like any runner, and restarts it after failures with growing delays. The demo
 * ends with this process, because that closes the IPC channel.
 *
 * @param {NodeJS.ProcessEnv} env
 * @param {string} ownerToken sent in a message, because other processes can read the environment
 * @returns {() => Promise<void>} stops the demo; resolves once its sessions are closed
 */
function startDemoFleet(env, ownerToken) {
  let ended = false;
  let failures = 0;
  /** @type {import('node:child_process').ChildProcess | null} */
  let child = null;
  const start = () => {
    if (ended) return;
    const startedAt = Date.now();
    child = fork(program, ['demo'], { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    child.send({ ownerToken }, () => undefined);
    child.once('error', (error) => process.stderr.write(`interlude: can't start the demo fleet: ${error.message}\n`));
    child.once('exit', (code) => {
      if (ended || code === 0) return;
      // a long run before the failure resets the delay
      failures = Date.now() - startedAt > MAX_RESTART_DELAY_MS ? 1 : failures + 1;
      setTimeout(start, Math.min(1_000 * 2 ** (failures - 1), MAX_RESTART_DELAY_MS));
    });
  };
  start();
  return () => {
    ended = true;
    const running = child;
    if (!running || running.exitCode !== null || running.signalCode !== null) return Promise.resolve();
    /** @type {Promise<void>} */
    const exited = new Promise((resolve) => running.once('exit', () => resolve()));
    running.kill('SIGTERM');
    return exited;
  };
}

/** Lets the pages of the server in this process find the agents on this machine. */
async function offerAgentSearch() {
  try {
    const { agentFinder, findAgents } = await loadTypescript('lib/runner/sources/found-agents.ts', { alone: true });
    processState().findAgents = agentFinder(() => findAgents(process.env));
  } catch (error) {
    process.stderr.write(`interlude: can't search this machine for agents, so the dashboard suggests none: ${error}\n`);
  }
}
