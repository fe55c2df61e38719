import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { runCli } from '../support/cli';
import { RUNS, SDK_NAME, sdkStage } from '../support/sdk-stage';

describe('the Agent SDK', () => {
  test('is installed into the data folder on Enter at a terminal, and the runner starts', async () => {
    const { claude, calls, inTerminal } = await sdkStage();
    const terminal = inTerminal(claude());
    await terminal.shows(`Install ${SDK_NAME} into data/agents? [Y/n] `);
    expect(await calls()).toEqual([]);
    terminal.type('\r');
    await terminal.shows(RUNS);
    expect(await terminal.ended).toBe(0);
    expect(terminal.shown).toContain('npm stands in');
    const [call, ...more] = await calls();
    expect(more).toEqual([]);
    expect(call?.args.slice(0, 2)).toEqual(['install', '--prefix']);
    expect(call?.args.slice(3, -1)).toEqual(['--ignore-scripts', '--no-audit', '--no-fund']);
    expect(call?.args.at(-1)).toMatch(new RegExp(`^${SDK_NAME}@\\d+\\.\\d+\\.\\d+$`));
    expect(call).toMatchObject({ kept: [], mode: '700' });
  });

  test('is installed once with --yes, in folders only their owner can read', async () => {
    const { base, data, env, home, claude, calls } = await sdkStage();
    const end = await runCli(claude('--yes'), env, base);
    expect(end).toMatchObject({ exitCode: 0, stdout: `${RUNS}\n` });
    for (const place of [data, join(data, 'agents'), join(data, 'agents', 'node_modules'), home]) {
      expect((await stat(place)).mode & 0o077, place).toBe(0);
    }
    expect((await runCli(claude(), env, base)).exitCode).toBe(0);
    expect(await calls()).toHaveLength(1);
  });
});
