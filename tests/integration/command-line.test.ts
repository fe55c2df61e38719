import { KINDS } from '@interlude/runner/sources/kinds';
import { expect, test } from 'vitest';
import manifest from '../../package.json';
import { runCli, runShell } from '../support/cli';
import { callCli } from '../support/cli-in-process';
import { tempDir } from '../support/temp-dir';

test('--version prints the version in any folder', async () => {
  const end = await runCli(['--version'], {}, await tempDir());
  expect(end).toEqual({ exitCode: 0, stdout: `interlude ${manifest.version}\n`, stderr: '' });
});

test('-V prints the version, and --help lists every command', async () => {
  expect((await callCli(['-V'])).stdout).toBe(`interlude ${manifest.version}\n`);
  const { stdout } = await callCli(['--help']);
  for (const name of [
    'replay',
    'demo',
    'runner',
    'hooks',
    'mcp',
    'wait',
    'outbox',
    'tokens',
    'sign-in',
    'conformance',
    '--version',
  ])
    expect(stdout).toContain(name);
});

test('runner --help prints the help of the named kind, and passes arguments after -- to the agent', async () => {
  const all = (await callCli(['runner', '--help'])).stdout;
  for (const kind of Object.keys(KINDS)) expect(all).toMatch(new RegExp(`^  ${kind} +\\S`, 'm'));
  const { exitCode, stdout } = await callCli(['runner', 'codex', '--help']);
  expect(exitCode).toBe(0);
  expect(stdout.match(/^Usage: .+ runner codex /gm)).toHaveLength(1);
  expect((await callCli(['help', 'runner', 'codex'])).stdout).toBe(stdout);
  const end = await callCli(['runner', 'acp', '--', 'no-such-agent', '--help'], {
    INTERLUDE_DATA_DIR: await tempDir(),
  });
  expect(end).toEqual({
    exitCode: 3,
    stdout: '',
    stderr: expect.stringMatching(/^interlude: no-such-agent was not found; .+\n$/),
  });
});

test('interlude-runner lists kinds and commands, and points to interlude for the commands it lacks', async () => {
  const runner = (args: string) => runShell(`npx interlude-runner ${args}`, {}, process.cwd());
  expect((await runner('--version')).stdout).toBe(`interlude-runner ${manifest.version}\n`);
  const { stdout } = await runner('--help');
  expect(stdout).toMatch(/^Usage: npx interlude-runner <kind> \[options\]\n +npx interlude-runner <command> /);
  for (const name of [...Object.keys(KINDS), 'outbox']) expect(stdout).toMatch(new RegExp(`^  ${name} +\\S`, 'm'));
  expect(await runner('tokens')).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('"npx interlude tokens"'),
  });
});

test('a usage error names a help command that works when pasted', async () => {
  const folder = await tempDir();
  const end = await runCli(['replay'], {}, folder);
  const command = /see "(.+)"\n$/.exec(end.stderr)?.[1] ?? '';
  expect(await runShell(command, {}, folder)).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining('Usage: '),
  });
});
