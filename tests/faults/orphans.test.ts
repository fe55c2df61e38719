import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { tempDir } from '../support/temp-dir';

/** After a SIGKILL of any process of `npm start -- --demo`, neither the server nor the demo fleet keeps running. */
const root = fileURLToPath(new URL('../..', import.meta.url));

test.runIf(process.platform === 'linux')('a SIGKILL of npm ends the server and the demo fleet', async () => {
  const { dataDir, npm, server } = await startWithDemo();
  expect(server).not.toBe(npm.pid);
  npm.kill('SIGKILL');
  await expect.poll(() => processesOf(dataDir)).toEqual([]);
});

test.runIf(process.platform === 'linux')('a SIGKILL of the server ends the demo fleet', async () => {
  const { dataDir, server } = await startWithDemo();
  process.kill(server, 'SIGKILL');
  await expect.poll(() => processesOf(dataDir)).toEqual([]);
});

async function startWithDemo() {
  const dataDir = await tempDir();
  const env = { ...withoutNpm(), INTERLUDE_DATA_DIR: dataDir };
  const npm = spawn('npm', ['start', '--', '--demo', '--port', '0'], { cwd: root, env, stdio: 'ignore' });
  onTestFinished(() => {
    for (const pid of [...processesOf(dataDir), npm.pid ?? 0]) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // already exited
      }
    }
  });
  await expect.poll(() => readFile(join(dataDir, 'server.json'), 'utf8').catch(() => '')).not.toBe('');
  const server = (JSON.parse(await readFile(join(dataDir, 'server.json'), 'utf8')) as { pid: number }).pid;
  // npm, possibly a shell, the server, the fleet
  await expect.poll(() => processesOf(dataDir).length).toBeGreaterThanOrEqual(3);
  return { dataDir, npm, server };
}

/** All processes with this data directory. */
function processesOf(dataDir: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const isZombie = / Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
        return !isZombie && readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`INTERLUDE_DATA_DIR=${dataDir}\0`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** The environment of a terminal, without npm's variables. */
function withoutNpm(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|INTERLUDE_|HOST$|PORT$|NODE_ENV$|VITEST)/.test(name),
  );
  return Object.fromEntries(kept) as NodeJS.ProcessEnv;
}
