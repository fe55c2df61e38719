import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CONNECTABLE_AGENTS, type FoundAgent } from '@interlude/protocol/connectable-agents';
import { agentFinder, DETECTION_RULES, findAgents } from '@interlude/runner/sources/found-agents';
import { KINDS } from '@interlude/runner/sources/kinds';
import { expect, onTestFinished, test, vi } from 'vitest';
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
  expect(await findAgents(env)).toEqual([
    { id: 'opencode', at: join(bin, 'opencode') },
    { id: 'gemini', at: join(bin, 'gemini') },
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
  expect(found.map(({ id }) => id)).toEqual(['claude-terminals', 'codex-terminals']);
  expect(found[1]?.at).toBe(join(socket, 'app-server-control.sock'));
});

test('searches again after seconds, and once for all who ask meanwhile', async () => {
  const { env, program } = await machine();
  const find = agentFinder(() => findAgents(env));
  expect(await Promise.all([find(), find()])).toEqual([[], []]);
  await program('codex');
  expect(await find()).toEqual([]);
  const now = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => now + 6_000);
  onTestFinished(() => void vi.restoreAllMocks());
  expect((await find()).map(({ id }) => id)).toEqual(['codex']);
});

test('answers in time, with the previous result, while a folder of the PATH does not respond', async () => {
  let respond: (found: FoundAgent[]) => void = () => {};
  const find = agentFinder(() => new Promise((resolve) => (respond = resolve)), 0);
  expect(await find()).toEqual([]);
  respond([{ id: 'codex', at: '/bin/codex' }]);
  expect(await find()).toHaveLength(1);
});

test('lists every kind of agent, and has a rule for each agent that can be found', () => {
  const kinds = CONNECTABLE_AGENTS.map(({ commands }) => /^runner (\w+)/.exec(commands.at(-1) ?? '')?.[1]);
  expect(new Set(kinds)).toEqual(new Set(Object.keys(KINDS)));
  const ids = CONNECTABLE_AGENTS.map(({ id }) => id);
  expect(Object.keys(DETECTION_RULES)).toEqual(ids.filter((id) => id !== 'agui'));
});
