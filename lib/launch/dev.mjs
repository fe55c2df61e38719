/**
 * `npm run dev`: Next's development server with the data folder and token of `npm start`. `npx interlude sign-in` and
 * runners on this machine find it like any other server.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { checkDataFolder } from '../runner/host/data-folder.mjs';
import { interludeCommand } from '../runner/host/own-program.mjs';
import { installIfMissing } from './install.mjs';
import { exitWithError, LaunchError, printLine } from './launch-error.mjs';
import { keepRunnerToken, runnerTokenFile } from './local-credentials.mjs';
import { readOptions } from './options.mjs';
import { root } from './paths.mjs';
import { reachable, reservePort } from './port.mjs';
import { publishServerFile } from './server-file.mjs';
import { readOrMakeToken, secretsFromFiles } from './token.mjs';

const DEV_HELP = `Usage: npm run dev -- [options]

Serves the code of this folder with hot reload.

  --port N    default: PORT, else 4319; 0 for any free port
  --host H    default: HOST, else 127.0.0.1`;

async function dev() {
  const { help, demo, host, basePath, dataDir, ...options } = readOptions(process.argv.slice(2), process.env);
  if (help) {
    printLine(DEV_HELP);
    return;
  }
  if (demo) throw new LaunchError('--demo is an option of npm start; run "npm run dev" without it', 2);
  const { port, release } = await reservePort(host, options.port);
  checkDataFolder(dataDir);
  const token = readOrMakeToken(dataDir, process.env);
  await installIfMissing();
  const next = join(root, 'node_modules', 'next', 'dist', 'bin', 'next');
  await release();
  const child = spawn(process.execPath, [next, 'dev', '--hostname', host, '--port', `${port}`], {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      ...secretsFromFiles(process.env),
      NEXT_TELEMETRY_DISABLED: '1',
      HOST: host,
      PORT: `${port}`,
      INTERLUDE_DATA_DIR: dataDir,
      INTERLUDE_TOKEN: token,
      INTERLUDE_RUNNER_TOKEN_FILE: runnerTokenFile(dataDir),
    },
  });
  child.once('exit', (code) => process.exit(code ?? 1));
  // next dev exits on the same signal, which ends this process
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.on(signal, () => child.kill(signal));
  const url = `http://${reachable(host)}:${port}${basePath}`;
  process.once('exit', publishServerFile(dataDir, url));
  printLine(`Sign in at ${url}: print a link in another terminal with ${interludeCommand(['sign-in'])}`);
  await keepRunnerToken(dataDir, { url, token });
}

dev().catch(exitWithError);
