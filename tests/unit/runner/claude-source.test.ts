import type { Command, CommandBodies } from '@interlude/protocol/commands';
import { requestDigest } from '@interlude/protocol/request-digest';
import type { CommandOutcome } from '@interlude/runner/host/seen-commands';
import { HANDLER_NAMES } from '@interlude/runner/host/source';
import type { ClaudeSdk, PermissionContext, QueryOptions } from '@interlude/runner/sources/claude/claude-sdk';
import { ClaudeSource, type ClaudeSourceOptions } from '@interlude/runner/sources/claude/claude-source';
import { describe, expect, onTestFinished, test } from 'vitest';
import { MemorySourceContext } from '@/tests/support/source-contract';
import { playRecorded } from '../../support/recordings';
import { sdkMessages, text } from '../adapters/sdk-messages';

/** A source around a scripted SDK that records its calls. */
async function running(more: Partial<ClaudeSourceOptions> = {}) {
  const around = new MemorySourceContext();
  const said: object[] = [];
  const recorded: { src: string; msg: unknown }[] = [];
  let wake = () => {};
  let over = false;
  let interrupts = 0;
  let options: QueryOptions | null = null;
  const close = () => {
    over = true;
    wake();
  };
  const sdk: ClaudeSdk = {
    query: (request) => {
      options = request.options;
      return {
        async *[Symbol.asyncIterator]() {
          for (;;) {
            yield* said.splice(0);
            if (over) return;
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          }
        },
        interrupt: async () => {
          interrupts += 1;
          return undefined;
        },
        stopTask: async () => {},
        close,
      };
    },
  };
  const source = new ClaudeSource({
    sdk,
    context: around,
    memory: { sessionId: 's', conversationId: 'c', cwd: '/', pid: null, running: false },
    inFlight: [],
    env: { HOME: '/nowhere' },
    answerWithinMs: 60_000,
    record: (fields) => recorded.push(fields),
    now: () => 1,
    ...more,
  });
  await source.start();
  await until(() => options !== null);
  onTestFinished(() => source.close(0, 'the test is over'));
  return {
    source,
    around,
    recorded,
    systemPrompt: () => options?.systemPrompt,
    openTurnId: () => around.openWork('s').turn?.runId as string,
    interrupts: () => interrupts,
    /** Resolves once the source has read them. */
    async say(...messages: object[]): Promise<void> {
      said.push(...messages);
      wake();
      await until(() => said.length === 0);
      await new Promise((resolve) => setImmediate(resolve));
    },
    ask(id: string, tool: string, input: Record<string, unknown>, more: Partial<PermissionContext> = {}) {
      const { signal } = new AbortController();
      return options?.canUseTool?.(tool, input, { signal, toolUseID: id, ...more });
    },
    requests: () => around.events.filter(({ name }) => String(name).startsWith('request:')),
    deliver: <Type extends Exclude<keyof typeof HANDLER_NAMES, 'task.wake' | 'wake-rule.set'>>(
      type: Type,
      body: CommandBodies[Type],
    ) => {
      const verb = source[HANDLER_NAMES[type] as 'deliver'].bind(source) as unknown as (
        command: Command,
        again: boolean,
      ) => Promise<CommandOutcome>;
      return verb({ id: 'c1', type, sessionId: 's', createdAt: 1, expiresAt: 2, body } as Command, false);
    },
  };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}

const about = (requestId: string, tool: string, input: unknown) => ({
  requestId,
  digest: requestDigest({ sessionId: 's', requestId, tool, input, position: '7' }),
  openedPosition: '7',
});

test('reports the version of Claude Code once known', async () => {
  const { init, assistant } = sdkMessages();
  const agent = await running();
  expect(agent.source.sessions[0]?.provider).toBeNull();
  await agent.say(init(['u1'], { claude_code_version: '2.1.329' }));
  expect(agent.source.sessions[0]?.provider).toBe('Claude Code 2.1.329');
  await agent.say(assistant('m1', [text('One')]), init(['u2'], { claude_code_version: ' ' }));
  expect(agent.source.sessions[0]?.provider).toBe('Claude Code 2.1.329');
});

describe('an interrupt', () => {
  const { init, assistant, result } = sdkMessages();

  test('ends the named turn and no later one', async () => {
    const agent = await running();
    await agent.say(init(['u1']), assistant('m1', [text('One')]));
    const first = agent.openTurnId();
    expect(first).toBeTruthy();
    await agent.say(result({ user_message_uuids: ['u1'] }));
    expect(await agent.deliver('interrupt', { turnId: first })).toEqual({
      state: 'failed',
      reason: expect.stringContaining('nothing is running now'),
    });
    await agent.say(init(['u2']), assistant('m2', [text('Two')]));
    const second = agent.openTurnId();
    expect(second).not.toBe(first);
    expect(await agent.deliver('interrupt', { turnId: first })).toEqual({
      state: 'failed',
      reason: expect.stringContaining('another one'),
    });
    expect(agent.interrupts()).toBe(0);
    expect(await agent.deliver('interrupt', { turnId: second })).toMatchObject({ state: 'done' });
    expect(agent.interrupts()).toBe(1);
  });
});

describe('an answer', () => {
  test('runs exactly the answered input, once', async () => {
    const agent = await running();
    const input = { command: 'ls', nested: { b: 1, a: [null, 'é 🌍'] } };
    const allowed = agent.ask('t1', 'Bash', input);
    const other = { ...about('t1', 'Bash', { ...input, command: 'ls -la' }), behavior: 'allow' } as const;
    expect(await agent.deliver('permission.decision', other)).toMatchObject({ state: 'failed' });
    expect(agent.requests().map(({ name }) => name)).toEqual(['request:opened']);
    // As stored by the server: through JSON, with keys in any order.
    const shown = JSON.parse(JSON.stringify({ nested: { a: [null, 'é 🌍'], b: 1 }, command: 'ls' }));
    const answer = { ...about('t1', 'Bash', shown), behavior: 'allow' } as const;
    expect(await agent.deliver('permission.decision', answer)).toEqual({ state: 'done' });
    expect(await allowed).toEqual({ behavior: 'allow', updatedInput: input });
    expect(await agent.deliver('permission.decision', answer)).toEqual({
      state: 'failed',
      reason: 'it was already answered',
    });
    expect(agent.requests().map(({ name }) => name)).toEqual(['request:opened', 'request:resolved']);
  });

  test('is emitted with the held input, whatever else the SDK sends', async () => {
    const agent = await running();
    void agent.ask('t1', 'Bash', { command: 'rm -rf .' }, { tool: 'Read', input: { path: 'a' }, title: 'Read a?' });
    expect(agent.requests()[0]?.value).toMatchObject({ tool_name: 'Bash', input: { command: 'rm -rf .' } });
  });

  test('does not reach a later request with its id', async () => {
    const agent = await running();
    const first = agent.ask('t1', 'Bash', { command: 'ls' });
    const second = agent.ask('t1', 'Bash', { command: 'rm -rf .' });
    expect(await first).toMatchObject({ behavior: 'deny' });
    expect(agent.requests().map(({ name, value }) => [name, (value as { input?: object }).input])).toEqual([
      ['request:opened', { command: 'ls' }],
      ['request:resolved', undefined],
      ['request:opened', { command: 'rm -rf .' }],
    ]);
    const late = { ...about('t1', 'Bash', { command: 'ls' }), behavior: 'allow' } as const;
    expect(await agent.deliver('permission.decision', late)).toMatchObject({ state: 'failed' });
    const now = { ...about('t1', 'Bash', { command: 'rm -rf .' }), behavior: 'deny' } as const;
    expect(await agent.deliver('permission.decision', now)).toEqual({ state: 'done' });
    expect(await second).toMatchObject({ behavior: 'deny' });
  });
});

test('replays its recording to the same events', async () => {
  const { source, around, recorded, say, ask, deliver } = await running();
  const { init, assistant, result } = sdkMessages();
  await say(init(['u1']), assistant('m1', [text('One')]));
  const asked = ask('toolu_1', 'Bash', { command: 'ls' });
  await deliver('permission.decision', { ...about('toolu_1', 'Bash', { command: 'ls' }), behavior: 'allow' });
  await asked;
  await say(assistant('m2', [text('Two')]), result({ user_message_uuids: ['u1'] }));
  await source.close(0, 'closed');
  const lines = recorded.map((fields) => ({ at: 1, fields: JSON.parse(JSON.stringify(fields)) }));
  const replayed = playRecorded('claude', lines, null);
  const shown = (events: readonly { type: string; name?: unknown }[]) => events.map(({ type, name }) => name ?? type);
  expect(shown(replayed.map(({ event }) => event))).toEqual(shown(around.events));
  expect(around.events.some(({ name }) => name === 'request:resolved')).toBe(true);
});

test.each([
  ['is part of its instructions', 'Paths here are links.', { append: 'Paths here are links.' }],
  ['is nothing where there is none', null, {}],
])('puts the workspace note %s', async (_, workspaceNote, more) => {
  const { systemPrompt } = await running({ workspaceNote });
  expect(systemPrompt()).toEqual({ type: 'preset', preset: 'claude_code', ...more });
});
