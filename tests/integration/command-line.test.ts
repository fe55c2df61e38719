import { expect, test } from 'vitest';
import manifest from '../../package.json';
import { runCli } from '../support/cli';
import { tempDir } from '../support/temp-dir';

test.each(['--version', '-V'])('%s tells the version, wherever it is called', async (flag) => {
  const end = await runCli([flag], {}, await tempDir());
  expect(end).toEqual({ exitCode: 0, stdout: `interlude ${manifest.version}\n`, stderr: '' });
});

test('--help names every command and --version', async () => {
  const { stdout } = await runCli(['--help']);
  for (const name of ['replay', 'demo', 'runner', 'hooks', 'outbox', '--version']) expect(stdout).toContain(name);
});
