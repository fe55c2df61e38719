import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CliError, DASHBOARD_FLAGS, EXIT, readFlags, SERVER_FLAGS } from '@interlude/runner/cli/command';
import { createLogger } from '@interlude/runner/logger/logger';
import { kind } from '@interlude/runner/sources/opencode/kind';
import type { OpenedRunner, RunnerCall } from '@interlude/runner/sources/runner-kind';
import { expect, onTestFinished, test } from 'vitest';
import { FakeOpencodeServer } from '../../support/opencode-server';
import { tempDir } from '../../support/temp-dir';

test('kinds with an address use --url for it and --dashboard for the dashboard', () => {
  const read = (argv: string[], env = {}) => readFlags('runner opencode', argv, DASHBOARD_FLAGS, env).values;
  expect(read(['--url', 'http://a:1', '--dashboard', 'http://b:2'])).toEqual({
    url: 'http://a:1',
    dashboard: 'http://b:2',
  });
  expect(() => read(['--url', 'a:1'])).toThrow('a:1 is not an http address');
  expect(() => read(['--url', 'http://a:1', '--dashboard', 'b'])).toThrow('b is not an http address');
  expect(() => read(['--url', 'http://a:1'], { INTERLUDE_URL: 'c' })).toThrow('c is not an http address');
  expect(() => read(['--url', 'http://a:1', '--dashboard', 'http://b:2'], { INTERLUDE_URL: 'c' })).not.toThrow();
  expect(() => readFlags('runner claude', ['--dashboard', 'http://b:2'], SERVER_FLAGS, {})).toThrow('--dashboard');
  expect(kind.urlNamesAgent).toBe(true);
});

async function prepared(flags: Record<string, string>, env: Record<string, string> = {}) {
  const call: RunnerCall = {
    flag: (name) => flags[name],
    has: () => false,
    seconds: (_, otherwise) => otherwise,
    usage: (problem) => new Error(problem),
    ...{ env, dataDir: await tempDir(), command: [] },
  };
  const { open, agentId, about } = await kind.prepare(call);
  const logger = createLogger({ agentId, dir: call.dataDir });
  return { agentId, about, logger, open: () => open({ agentId, logger } as OpenedRunner) };
}

async function server(password: string | null) {
  const standIn = new FakeOpencodeServer();
  await standIn.start();
  onTestFinished(() => standIn.kill());
  standIn.password = password;
  return standIn;
}

test('reads the password from file, address or environment, and redacts it', async () => {
  const { url } = await server('a-long-secret');
  const file = join(await tempDir(), 'password');
  await writeFile(file, 'a-long-secret\n');
  const named = url.replace('//', '//opencode:a-long-secret@');
  for (const [flags, env] of [
    [{ url, 'password-file': file }, {}],
    [{ url: named }, {}],
    [{ url }, { OPENCODE_SERVER_PASSWORD: 'a-long-secret' }],
  ] as [Record<string, string>, Record<string, string>][]) {
    const { open, about, agentId, logger } = await prepared(flags, env);
    expect((await open()).greeting).toContain(`follows the sessions of OpenCode at ${url}; `);
    expect(JSON.stringify([about, agentId])).not.toContain('a-long-secret');
    expect(logger.redactor.find('It is a-long-secret.')).toHaveLength(1);
  }
});

test('ends with advice when the password is refused', async () => {
  const { url } = await server('a-long-secret');
  const opened = (await prepared({ url })).open();
  await expect(opened).rejects.toThrow('OpenCode requires a password; set OPENCODE_SERVER_PASSWORD');
  await expect(opened).rejects.toMatchObject({ exitCode: EXIT.failed });
  await expect((await prepared({ url }, { OPENCODE_SERVER_PASSWORD: 'x' })).open()).rejects.toBeInstanceOf(CliError);
});

test('waits for a missing server, with a message', async () => {
  const standIn = await server(null);
  const { url } = standIn;
  const { open, agentId } = await prepared({ url });
  await standIn.kill();
  expect((await open()).greeting).toBe(
    `${agentId} follows the sessions of OpenCode at ${url} once it answers (ECONNREFUSED); Ctrl-C ends it`,
  );
  await standIn.start();
});

test('names a missing password file', async () => {
  await expect(prepared({ 'password-file': '/nowhere/at/all' })).rejects.toThrow(
    "can't be read from /nowhere/at/all (ENOENT)",
  );
});
