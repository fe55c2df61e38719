import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DETECTION_RULES, findAgents } from '@interlude/runner/sources/found-agents';
import { KINDS } from '@interlude/runner/sources/kinds';
import { expect, test } from 'vitest';
import { tempDir } from '../../support/temp-dir';

async function machine() {
  const home = await tempDir();
  const bin = join(home, 'bin');
  await mkdir(bin);
  const env = { HOME: home, PATH: `relative:${bin}:/nowhere` };
  return {
    env,
    home,
    bin,
    async program(name: string, mode = 0o755) {
      await writeFile(join(bin, name), '');
      await chmod(join(bin, name), mode);
    },
  };
}

test('offers nothing on a machine without agents', async () => {
  expect(await findAgents((await machine()).env)).toEqual([]);
  expect(await findAgents({})).toEqual([]);
});

test('finds programs on the PATH with their commands', async () => {
  const { env, bin, program } = await machine();
  await program('gemini');
  await program('opencode');
  await program('qwen', 0o644);
  await mkdir(join(bin, 'codex'));
  expect(await findAgents(env)).toMatchObject([
    { kind: 'opencode', at: join(bin, 'opencode') },
    { kind: 'acp', title: 'Gemini CLI', commands: ['runner acp -- gemini --acp'] },
  ]);
});

test('finds sockets and settings, also moved ones, and offers equal commands once', async () => {
  const { env, home, program } = await machine();
  await program('codex');
  const socket = join(home, 'elsewhere/app-server-control');
  await mkdir(socket, { recursive: true });
  await writeFile(join(socket, 'app-server-control.sock'), '');
  await mkdir(join(home, '.claude/projects'), { recursive: true });
  const found = await findAgents({ ...env, CODEX_HOME: join(home, 'elsewhere') });
  expect(found.map(({ title }) => title)).toEqual(['Claude Code in your terminals', 'Codex in your terminals']);
  expect(found[1]?.at).toBe(join(socket, 'app-server-control.sock'));
});

test('has rules for existing kinds only', () => {
  for (const [kind, signs] of Object.entries(DETECTION_RULES)) {
    expect(Object.keys(KINDS)).toContain(kind);
    for (const { commands } of signs) expect(commands.at(-1)).toMatch(new RegExp(`^runner ${kind}\\b`));
  }
});
