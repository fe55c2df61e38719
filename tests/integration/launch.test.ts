import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createClient } from '@libsql/client';
import { expect, onTestFinished, test } from 'vitest';
import { reservePort } from '@/lib/launch/port.mjs';
import { refusedStart } from '../support/cli';
import { tempDir } from '../support/temp-dir';

const program = fileURLToPath(new URL('../../lib/launch/start.mjs', import.meta.url));

/** Starts the dashboard where it must refuse to start. */
function refused(args: string[], env: Record<string, string>): Promise<{ exitCode: number | null; stderr: string }> {
  const { INTERLUDE_TOKEN: _token, HOST: _host, PORT: _port, ...inherited } = process.env;
  const child = spawn(process.execPath, [program, ...args], {
    env: { ...inherited, ...env } as NodeJS.ProcessEnv,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  return new Promise((resolve) => child.once('close', (exitCode) => resolve({ exitCode, stderr })));
}

test('a port in use is reported on one line, before any install or build', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await new Promise((resolve) => other.once('listening', resolve));
  const { port } = other.address() as AddressInfo;
  const end = await refused(['--port', String(port)], { INTERLUDE_DATA_DIR: await tempDir() });
  expect(end.exitCode).toBe(1);
  expect(end.stderr).toMatch(new RegExp(`^interlude: port ${port} is in use on 127.0.0.1; [^\\n]+\\n$`));
});

test('a port is reserved from its check until the server listens', async () => {
  const held = await reservePort('127.0.0.1', 0);
  await expect(reservePort('127.0.0.1', held.port)).rejects.toThrow(`port ${held.port} is in use`);
  await held.release();
  const next = await reservePort('127.0.0.1', held.port);
  await next.release();
});

test('a short token is reported on one line', async () => {
  const env = { INTERLUDE_DATA_DIR: await tempDir(), INTERLUDE_TOKEN: 'fifteen-letters' };
  expect(await refused(['--port', '0'], env)).toEqual({
    exitCode: 1,
    stderr:
      'interlude: the token in INTERLUDE_TOKEN has 15 characters; use at least 16, such as the output of openssl rand -base64 32\n',
  });
});

test('an unwritable data directory is reported on one line', async () => {
  const end = await refused(['--port', '0'], { INTERLUDE_DATA_DIR: join(program, 'data') });
  expect(end.exitCode).toBe(1);
  expect(end.stderr).toMatch(
    /^interlude: part of .* is a file, not a folder; move that file, or set INTERLUDE_DATA_DIR[^\n]+\n$/,
  );
});

test.each(['interlude', '/interlude/', '/../a', '/a b', '//host'])(
  'a base path of %j is reported on one line',
  async (path) => {
    const end = await refused([], { INTERLUDE_BASE_PATH: path });
    expect(end.exitCode).toBe(2);
    expect(end.stderr).toMatch(/^interlude: INTERLUDE_BASE_PATH is "[^\n]+; set a path such as \/interlude[^\n]+\n$/);
  },
);

test('a setting that only the server reads is reported on one line, before the address', async () => {
  const env = { INTERLUDE_DATA_DIR: await tempDir(), INTERLUDE_REDACT_ROLES: 'admin' };
  expect(await refused(['--port', '0'], env)).toEqual({
    exitCode: 2,
    stderr: expect.stringMatching(
      /^interlude: INTERLUDE_REDACT_ROLES contains "admin"\. Use viewer, operator [^\n]+\n$/,
    ),
  });
});

test.each([
  [['--port', 'http'], '"http" is not a port'],
  [['--port', '70000'], '"70000" is not a port'],
  [['--turbo'], "Unknown option '--turbo'"],
])('%j is a usage error', async (args, words) => {
  const end = await refused(args, {});
  expect(end).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(words) });
});

test('npm start reports a file that is no database', async () => {
  const folder = await tempDir();
  await writeFile(join(folder, 'interlude.db'), 'Dear diary, this is a text and not a database at all.');
  expect(await refusedStart({ INTERLUDE_DATA_DIR: folder })).toMatch(
    /interlude\.db is not a database\. Move that file away/,
  );
});

test('npm start refuses a database of a newer version', async () => {
  const folder = await tempDir();
  const client = createClient({ url: `file:${join(folder, 'interlude.db')}` });
  await client.execute('CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text, created_at numeric)');
  await client.execute("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 9999999999999)");
  client.close();
  expect(await refusedStart({ INTERLUDE_DATA_DIR: folder })).toContain('was written by a newer Interlude');
});

test('npm start reports an address that is no database', async () => {
  const env = { INTERLUDE_DATA_DIR: await tempDir(), INTERLUDE_DATABASE_URL: 'nonsense' };
  expect(await refusedStart(env)).toContain('INTERLUDE_DATABASE_URL isn’t the address of a database');
});

test('npm start refuses a token that no header can carry', async () => {
  const env = { INTERLUDE_DATA_DIR: await tempDir(), INTERLUDE_TOKEN: 'ein Schlüssel mit Lücken' };
  expect(await refusedStart(env)).toContain("can't be sent in a header");
});
