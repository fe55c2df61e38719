import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { marker } from '../support/ingest-target';
import { ensureDebianProgram } from '../support/programs.mjs';
import { reservePort } from '../support/reserve-port.mjs';
import { pause } from '../support/scene';
import { WAIT_MS } from '../support/timeouts';

/** The container, built and run from the Dockerfile. Needs buildah and a Node image. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TOKEN = 'a-token-for-tests-0123456789';
/** Installs all packages and builds; takes minutes. */
const BUILD_MS = 1_200_000;
const PULL_MS = 120_000;

const found = ensureDebianProgram('buildah', '');
const buildah = 'program' in found ? found.program : '';
const nodeImage = process.env.INTERLUDE_TEST_NODE_IMAGE ?? 'docker.io/library/node:20-slim';
// works inside a container without extra privileges
const env = { ...process.env, BUILDAH_ISOLATION: 'chroot' };

function missing(): string | null {
  if ('missing' in found) return found.missing;
  const isThere = spawnSync(buildah, ['inspect', '--type', 'image', nodeImage], { env }).status === 0;
  if (isThere || spawnSync(buildah, ['pull', nodeImage], { env, timeout: PULL_MS }).status === 0) return null;
  return `${nodeImage} can't be had; INTERLUDE_TEST_NODE_IMAGE names another`;
}

const why = missing();
if (why !== null) test.skip(`the container is built and runs (not run: ${why})`, () => {});

describe.skipIf(why !== null)('the container', () => {
  const image = `localhost/interlude-test-${process.pid}`;
  let container = '';
  let running: ChildProcess;
  let output = '';
  let port: number;
  const run = promisify(execFile);
  const inside = (...args: string[]) =>
    spawnSync(buildah, ['run', '-e', `PORT=${port}`, '-e', `INTERLUDE_TOKEN=${TOKEN}`, container, '--', ...args], {
      env,
      encoding: 'utf8',
    });
  const pidInside = () => (JSON.parse(inside('cat', '/data/server.json').stdout) as { pid: number }).pid;

  beforeAll(async () => {
    await run(buildah, ['bud', '--build-arg', `NODE_IMAGE=${nodeImage}`, '-t', image, ROOT], {
      env,
      maxBuffer: 64 * 1024 * 1024,
    });
    container = (await run(buildah, ['from', image], { env })).stdout.trim();
    port = await reservePort();
    const args = ['-e', `PORT=${port}`, '-e', `INTERLUDE_TOKEN=${TOKEN}`, '-e', 'HOST=127.0.0.1', container];
    running = spawn(buildah, ['run', ...args, '--', 'node', 'lib/launch/start.mjs'], { env });
    for (const stream of [running.stdout, running.stderr]) {
      stream?.on('data', (chunk) => {
        output += chunk;
      });
    }
    const deadline = Date.now() + WAIT_MS;
    while (!output.includes('Sign in:')) {
      if (running.exitCode !== null || Date.now() > deadline) throw new Error(`the container did not start: ${output}`);
      await pause(50);
    }
  }, BUILD_MS);
  afterAll(async () => {
    // stopping buildah alone would leave the container's processes
    if (running?.exitCode === null) {
      const gone = once(running, 'exit');
      inside('sh', '-c', `kill -KILL ${pidInside()}`);
      await gone;
    }
    for (const args of [
      ['rm', container],
      ['rmi', image],
    ])
      spawnSync(buildah, args, { env });
  });

  test('runs unprivileged, accepts records, signs in and passes its health check', async () => {
    expect(inside('id', '-u').stdout.trim()).toBe('1000');
    expect(inside('sh', '-c', 'touch /app/x || echo refused').stdout.trim()).toBe('refused');
    const address = `http://127.0.0.1:${port}`;
    const response = await fetch(`${address}/api/v1/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ producer: { id: 'p1', epoch: 1 }, records: [marker(1)] }),
    });
    expect([response.status, await response.json()]).toEqual([200, expect.objectContaining({ ackedSeq: 1 })]);
    const page = await fetch(`${address}/signed-out`);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('Or paste the token')]);
    expect(inside('npm', 'run', '-s', 'interlude', '--', 'sign-in').stdout).toContain(`${address}/sign-in?token=`);
    const [, check = '[]'] = /HEALTHCHECK[^[]*CMD (\[.*\])/.exec(readFileSync(`${ROOT}Dockerfile`, 'utf8')) ?? [];
    const [program = '', ...args] = JSON.parse(check) as string[];
    expect(inside(program, ...args).status).toBe(0);
    const gone = once(running, 'exit');
    expect(inside('sh', '-c', `kill -TERM ${pidInside()}`).status).toBe(0);
    expect((await gone)[0]).toBe(143);
    expect(inside(program, ...args).status).toBe(1);
  });
});
