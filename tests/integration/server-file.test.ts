import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { tempDir } from '../support/temp-dir';

const PROGRAM = `
  import { publishServerFile } from ${JSON.stringify(new URL('../../lib/launch/server-file.mjs', import.meta.url).href)};
  const takeBack = publishServerFile(process.argv[1], process.argv[2]);
  process.on('message', () => { takeBack(); process.disconnect(); });
  process.send('announced');`;

/** A process that announces a server until the test stops it. */
async function server(dataDir: string, url: string): Promise<{ child: ChildProcess; stop: () => Promise<unknown> }> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, dataDir, url], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'message');
  return {
    child,
    stop: () => {
      child.send('stop');
      return once(child, 'exit');
    },
  };
}

const announced = (dataDir: string) => JSON.parse(readFileSync(join(dataDir, 'server.json'), 'utf8'));

test('a second server that stops leaves the file to the first, which still runs', async () => {
  const dataDir = await tempDir();
  const first = await server(dataDir, 'http://127.0.0.1:1');
  const second = await server(dataDir, 'http://127.0.0.1:2');
  const third = await server(dataDir, 'http://127.0.0.1:3');
  expect(announced(dataDir)).toEqual({ url: 'http://127.0.0.1:3', pid: third.child.pid });
  await second.stop();
  expect(announced(dataDir).url).toBe('http://127.0.0.1:3');
  await third.stop();
  expect(announced(dataDir)).toEqual({ url: 'http://127.0.0.1:1', pid: first.child.pid });
  await first.stop();
  expect(readdirSync(dataDir)).toEqual([]);
});

test('a killed server is no longer named', async () => {
  const dataDir = await tempDir();
  const killed = await server(dataDir, 'http://127.0.0.1:1');
  killed.child.kill('SIGKILL');
  await once(killed.child, 'exit');
  const other = await server(dataDir, 'http://127.0.0.1:2');
  await other.stop();
  expect(readdirSync(dataDir)).toEqual([]);
});

test('a starting server removes the files of killed ones, and none of running ones', async () => {
  const dataDir = await tempDir();
  const killed = await server(dataDir, 'http://127.0.0.1:1');
  killed.child.kill('SIGKILL');
  await once(killed.child, 'exit');
  const { pid } = killed.child;
  for (const name of [`.server.json.${pid}`, `.server.json.${pid}.${pid}`]) writeFileSync(join(dataDir, name), '{');
  const running = await server(dataDir, 'http://127.0.0.1:2');
  const started = await server(dataDir, 'http://127.0.0.1:3');
  const pids = [running, started].map(({ child }) => `server.json.${child.pid}`);
  expect(readdirSync(dataDir).sort()).toEqual(['server.json', ...pids].sort());
});

test('files of other programs remain', async () => {
  const dataDir = await tempDir();
  const one = await server(dataDir, 'http://127.0.0.1:1');
  writeFileSync(join(dataDir, 'server.json'), '{}');
  await one.stop();
  expect(readdirSync(dataDir)).toEqual(['server.json']);
});
