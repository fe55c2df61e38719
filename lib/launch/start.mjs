/**
 * `npm start`: from a fresh checkout to a running dashboard. Plain JavaScript without a package, because it runs before
 * there are any.
 *
 * Ordering: what can be refused at once (options, Node, data folder, token, port) is looked at before what takes
 * minutes.
 */

import { join } from 'node:path';
import { checkDataFolder } from '../runner/host/data-folder.mjs';
import { displayPath, interludeCommand } from '../runner/host/own-program.mjs';
import { launchServer, theServer } from '../server/process-server.mjs';
import { buildWhatIsOld } from './build.mjs';
import { startDemoFleet } from './demo-fleet.mjs';
import { ending } from './ending.mjs';
import { keepLookingForAgents } from './found-agents.mjs';
import { installWhatIsMissing } from './install.mjs';
import { ipv6Loopback, readOrMakeLocalName } from './local-name.mjs';
import { readOptions, START_HELP } from './options.mjs';
import { whenOrphaned } from './orphan.mjs';
import { isPacked } from './packed.mjs';
import { holdPort } from './port.mjs';
import { root } from './root.mjs';
import { keepRunnerToken, runnerTokenFile } from './runner-token.mjs';
import { giveUp, LaunchError, say } from './say.mjs';
import { announce, runningAt } from './server-file.mjs';
import { isTerminal, signInLines } from './sign-in-link.mjs';
import { readOrMakeToken, secretsFromFiles } from './token.mjs';
import { outliveListeners } from './unheard-output.mjs';

/** Whoever is told to end must be gone within two seconds. What is cut off by it is on disk, or was not acknowledged. */
const END_MS = 1_900;
const DEMO_FAREWELL_MS = 2_000;

async function start() {
  outliveListeners();
  const options = readOptions(process.argv.slice(2), process.env);
  if (options.help) {
    say(START_HELP);
    return;
  }
  requireNode(20, 9);
  if (options.demo && isPacked) throw new LaunchError('the demo fleet is not in a packed copy, which only serves', 2);
  const end = ending();
  whenOrphaned(() => end.tell('SIGTERM'));
  const { host, dataDir, basePath } = options;
  const held = await holdPort(host, options.port).catch((error) => {
    const url = runningAt(dataDir, options.port);
    if (url === null) throw error;
    const next = options.demo ? `; for the demo beside it run: ${interludeCommand(['demo'])}` : '';
    throw new LaunchError(`port ${options.port} is in use on ${host}; Interlude runs already, at ${url}${next}`);
  });
  checkDataFolder(dataDir);
  const commands = hint();
  const ipv6 = await ipv6Loopback(host, held.port);
  const localName = ipv6 === 'somebody else’s' ? '' : readOrMakeLocalName(dataDir, process.env);
  const token = readOrMakeToken(dataDir, process.env);
  process.chdir(root);
  await installWhatIsMissing();
  await buildWhatIsOld(basePath);
  Object.assign(process.env, secretsFromFiles(process.env), {
    NODE_ENV: 'production',
    HOST: host,
    PORT: String(held.port),
    INTERLUDE_BASE_PATH: basePath,
    INTERLUDE_DATA_DIR: dataDir,
    INTERLUDE_TOKEN: token,
    INTERLUDE_LOCAL_NAME: localName,
    // where those who have to say one to a shell find it
    INTERLUDE_RUNNER_TOKEN_FILE: runnerTokenFile(dataDir),
  });
  const { prepareDatabase } = await import('./database.mjs');
  await prepareDatabase(process.env);
  launchServer();
  await keepLookingForAgents();
  const { serve } = await import('./serve.mjs');
  const { url, close } = await serve(host, held, ipv6 === 'ours', basePath);
  end.after(() => within(END_MS, stop(close)));
  const own = { url, token };
  await keepRunnerToken(dataDir, own);
  const signIn = await signInLines(own, isTerminal(process.stdout, process.env));
  const pages = localName === '' || new URL(url).hostname !== '127.0.0.1' ? url : ownPages(localName, url);
  const takeBack = announce(dataDir, url, pages);
  process.once('exit', takeBack);
  const elsewhere = pages === url ? '' : `  Browsers on this machine have it at ${pages}\n`;
  say(`\n  Interlude is at ${url}\n${signIn}\n${elsewhere}`);
  const { INTERLUDE_TOKEN: _, INTERLUDE_TOKEN_FILE: __, ...unowned } = process.env;
  const endDemo = options.demo ? startDemoFleet({ ...unowned, INTERLUDE_URL: url }) : null;
  say(endDemo ? '  The demo fleet is at work. Ctrl-C ends both.\n' : isPacked ? '' : commands);
  if (endDemo === null) return;
  end.after(async () => {
    // First, while there is a server to tell that its sessions end. It must not hold us up.
    await within(DEMO_FAREWELL_MS, endDemo());
    await within(END_MS, stop(close));
  });
}

/**
 * @param {string} localName
 * @param {string} url
 */
function ownPages(localName, url) {
  const { port, pathname } = new URL(url);
  return `http://${localName}.localhost:${port}${pathname.replace(/\/$/, '')}`;
}

/**
 * Ordering: nobody new is let in, streams are told, whoever is inside gets an answer; then the database is closed. After
 * the last write its file holds everything by itself: it can be backed up and restored alone.
 *
 * @param {() => Promise<void>} closeDoor
 */
function stop(closeDoor) {
  const answered = closeDoor();
  return theServer().close(answered);
}

/**
 * @param {number} ms
 * @param {Promise<unknown>} work
 */
function within(ms, work) {
  return Promise.race([work, new Promise((resolve) => setTimeout(resolve, ms))]);
}

/** Each can be pasted and run where `npm start` was called. */
function hint() {
  /** @param {string[]} args */
  const ours = (...args) => `    ${interludeCommand(args)}`;
  const recording = displayPath(join(root, 'tests/fixtures/recordings/demo/test-run.jsonl'));
  return [
    `  In another terminal, run Claude Code, in a project of yours or an empty one:`,
    `    mkdir -p ~/my-project && ${interludeCommand(['runner', 'claude', '--cwd'])} ~/my-project`,
    '  Or follow the Claude Code of your terminals:',
    ours('hooks', 'install'),
    ours('runner', 'hooks'),
    '  Or replay a recorded run:',
    ours('replay', recording),
    '  See a whole fleet:',
    ours('demo'),
    '  Ctrl-C ends it.\n',
  ].join('\n');
}

/**
 * @param {number} major
 * @param {number} minor
 */
function requireNode(major, minor) {
  const [hasMajor = 0, hasMinor = 0] = process.versions.node.split('.').map(Number);
  if (hasMajor > major || (hasMajor === major && hasMinor >= minor)) return;
  throw new LaunchError(`Node ${process.versions.node} is too old; install ${major}.${minor} or newer`, 3);
}

start().catch(giveUp);
