import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync } from 'node:fs';
import { chown, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { FrameReader } from '../support/frames';
import { marker } from '../support/ingest-target';
import { ensureDebianProgram } from '../support/programs.mjs';
import { reservePort } from '../support/reserve-port.mjs';
import { tempDir } from '../support/temp-dir';
import { expectWithin } from '../support/timing';

/** A packed copy as self-hosted, started in every documented way. */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TOKEN = 'a-token-for-tests-0123456789';
const READY_WITHIN_MS = 60_000;
/** The Dockerfile's user id, unused on most machines. */
const UID = 1000;

describe('a packed copy in a read-only folder', () => {
  let folder: string;
  let copy: string;
  let dataDir: string;
  let port: number;
  let child: ChildProcess;
  let output = '';
  const bearer = { authorization: `Bearer ${TOKEN}` };
  const who = process.getuid?.() === 0 ? { uid: UID, gid: UID } : {};
  const env = () => onlyWith({ PORT: String(port), INTERLUDE_DATA_DIR: dataDir, INTERLUDE_TOKEN: TOKEN });
  const run = (program: string, args: string[]) =>
    spawnSync(program, args, { ...who, cwd: copy, env: env(), encoding: 'utf8' });
  const address = (path: string) => `http://127.0.0.1:${port}${path}`;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'interlude-self-host-'));
    chmodSync(folder, 0o755);
    [copy, dataDir, port] = [join(folder, 'copy'), join(folder, 'data'), await reservePort()];
    const packed = spawnSync(process.execPath, ['lib/launch/pack.mjs', copy], { cwd: ROOT, encoding: 'utf8' });
    if (packed.status !== 0) throw new Error(`packing failed: ${packed.stderr}`);
    await mkdir(dataDir, { mode: 0o700 });
    if ('uid' in who) await chown(dataDir, UID, UID);
    const options = { ...who, cwd: '/', env: env() };
    child = spawn(process.execPath, [join(copy, 'lib/launch/start.mjs')], options);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk) => {
        output += chunk;
      });
    }
    const deadline = Date.now() + READY_WITHIN_MS;
    while (!(await readFile(join(dataDir, 'server.json')).catch(() => null))) {
      if (child.exitCode !== null || Date.now() > deadline) throw new Error(`the server did not start: ${output}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  });
  afterAll(async () => {
    if (child?.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit');
    await rm(folder, { recursive: true, force: true });
  });

  test('is small and contains no build paths', () => {
    const files = filesOf(copy);
    expect(files.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(80 * 1024 * 1024);
    const names = files.map(({ path }) => path.slice(copy.length + 1));
    expect(
      names.filter((name) => /^node_modules\/(typescript|esbuild|tsx|sharp|vitest)\/|(^|\/)\.env/.test(name)),
    ).toEqual([]);
    const ours = files.filter(({ path }) => /^(ready|lib)\//.test(path.slice(copy.length + 1)));
    for (const { path } of ours) expect(readFileSync(path, 'utf8').includes(ROOT), path).toBe(false);
  });

  test('signs in, shows pages, accepts records and streams them', async () => {
    const headers = { 'content-type': 'application/json', ...bearer };
    const batch = (seq: number) =>
      fetch(address('/api/v1/events'), {
        method: 'POST',
        headers,
        body: JSON.stringify({ producer: { id: 'p1', epoch: 1 }, records: [marker(seq)] }),
      });
    expect((await batch(1)).status).toBe(200);
    const stream = await fetch(address('/api/v1/stream?topic=session:s1&after=0'), { headers: bearer });
    const reader = new FrameReader(stream.body as ReadableStream<Uint8Array>);
    await reader.frame('session-event');
    expect((await batch(2)).status).toBe(200);
    await reader.frame('session-event', 2);
    await reader.cancel();
    const signIn = await fetch(address('/sign-in'), {
      method: 'POST',
      headers: { origin: address(''), 'content-type': 'application/x-www-form-urlencoded' },
      body: `token=${TOKEN}`,
      redirect: 'manual',
    });
    expect(signIn.status).toBe(303);
    const cookie = signIn.headers.get('set-cookie')?.split(';')[0] ?? '';
    for (const path of ['/signed-out', '/', '/sessions/s1', '/agents', '/settings/storage', '/settings/api']) {
      const page = await fetch(address(path), { headers: { cookie }, redirect: 'manual' });
      expect([path, page.status]).toEqual([path, 200]);
      const [script] = /\/_next\/static\/[^"]+\.js/.exec(await page.text()) ?? [];
      expect((await fetch(address(script ?? '/none'))).status).toBe(200);
    }
    expect(output).not.toMatch(/error|EACCES|EROFS/i);
  });

  test('has the commands of a clone', () => {
    const command = (...args: string[]) => run(process.execPath, ['lib/launch/interlude.mjs', ...args]);
    expect(command('sign-in').stdout).toContain(address('/sign-in?token='));
    expect(command('tokens', 'list').status).toBe(0);
    expect(command('db', 'check').stdout).toContain(' is sound');
    expect(command('db', 'backup', join(dataDir, 'copy.db')).status).toBe(0);
    for (const name of ['demo', 'runner', 'hooks', 'replay', 'mcp', 'wait', 'outbox', 'conformance']) {
      expect(command(name, '--help').stdout).toMatch(/^Usage: /);
    }
  });

  test('passes the container’s health check while it is healthy', async () => {
    const [, check = '[]'] = /HEALTHCHECK[^[]*CMD (\[.*\])/.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8')) ?? [];
    const [program, ...args] = JSON.parse(check) as string[];
    expect(program).toBe('node');
    expect(run(process.execPath, args).status).toBe(0);
    const since = performance.now();
    child.kill('SIGTERM');
    const [exitCode] = await once(child, 'exit');
    expect(exitCode).toBe(143);
    expectWithin(performance.now() - since, 2_000);
    expect(run(process.execPath, args).status).toBe(1);
  });
});

test('a copy packed for a base path serves only that path', async () => {
  const [copy, dataDir, port] = [join(await tempDir(), 'copy'), await tempDir(), await reservePort()];
  const env = (basePath: string) =>
    onlyWith({
      PORT: String(port),
      INTERLUDE_DATA_DIR: dataDir,
      INTERLUDE_TOKEN: TOKEN,
      INTERLUDE_BASE_PATH: basePath,
    });
  const packing = spawn(process.execPath, ['lib/launch/pack.mjs', copy], { cwd: ROOT, env: env('/a/packed.one') });
  expect(await once(packing, 'exit')).toEqual([0, null]);
  const start = [join(copy, 'lib/launch/start.mjs')];
  expect(spawnSync(process.execPath, start, { env: env(''), encoding: 'utf8' })).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^interlude: this copy was packed with a base path; [^\n]+\n$/),
  });
  const child = spawn(process.execPath, start, { env: env('/a/packed.one'), stdio: 'ignore' });
  onTestFinished(async () => {
    if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit');
  });
  const statusOf = (path: string) =>
    fetch(`http://127.0.0.1:${port}${path}`).then(
      ({ status }) => status,
      () => null,
    );
  const deadline = Date.now() + READY_WITHIN_MS;
  while ((await statusOf('/a/packed.one/healthz')) !== 200) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error('the server did not start');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(await statusOf('/a/packed.one/signed-out')).toBe(200);
  expect(await statusOf('/signed-out')).toBe(404);
});

const systemd = ensureDebianProgram('systemd-analyze', '');
where(systemd)('systemd accepts the unit files for one and for several instances', async () => {
  const unit = readFileSync(join(ROOT, 'deploy/interlude.service'), 'utf8').replace('/usr/bin/node', process.execPath);
  const folder = await tempDir();
  const verified = (name: string) => spawnSync(programOf(systemd), ['verify', name], { cwd: folder, encoding: 'utf8' });
  for (const [file, name] of [
    ['interlude.service', './interlude.service'],
    ['interlude@.service', './interlude@4320.service'],
  ] as const) {
    await writeFile(join(folder, file), unit);
    const { status, stderr } = verified(name);
    expect([name, status, stderr]).toEqual([name, 0, '']);
  }
});

const compose = ensureDebianProgram('docker-compose');
where(compose)('docker-compose accepts the compose file and requires a token', () => {
  const check = (env: Record<string, string>) =>
    spawnSync(programOf(compose), ['-f', join(ROOT, 'compose.yaml'), 'config', '--quiet'], {
      env: onlyWith(env),
      encoding: 'utf8',
    });
  expect(check({ INTERLUDE_TOKEN: TOKEN })).toMatchObject({ status: 0, stderr: '' });
  expect(check({})).toMatchObject({ status: 1, stderr: expect.stringContaining("set the owner's token") });
});

/** Skips a test with the reason if a program is missing. */
function where(found: { program: string } | { missing: string }) {
  return 'program' in found
    ? test
    : (name: string, _body: unknown) => test.skip(`${name} (not run: ${found.missing})`, () => {});
}

/** A clean environment with only PATH. */
function onlyWith(env: Record<string, string>): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, ...env } as unknown as NodeJS.ProcessEnv;
}

function programOf(found: { program: string } | { missing: string }): string {
  return 'program' in found ? found.program : '';
}

function filesOf(folder: string): { path: string; bytes: number }[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesOf(path);
    return entry.isFile() ? [{ path, bytes: readFileSync(path).length }] : [];
  });
}
