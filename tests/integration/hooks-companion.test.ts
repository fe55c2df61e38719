import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type {
  AgentDetail,
  AgentLogLevel,
  LogPage,
  MessageItem,
  SessionObligations,
  SessionSummary,
  Task,
  Turn,
} from '@interlude/protocol/read-models';
import { controlPath, readControlFile } from '@interlude/runner/host/control-file';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ingest, record } from '../support/ingest-target';
import { readTerminalRecording, writeLine } from '../support/recordings';
import { tempDir } from '../support/temp-dir';
import { scriptedTerminals } from '../support/terminal-companion';

/**
 * The companion of terminal sessions against the real server. The test plays the terminal with hooks and transcript
 * lines.
 */

const { server, terminal, atWork, read, turnsOf, texts, post, eventually } = scriptedTerminals();

describe('a day in a terminal', () => {
  test('appears in the dashboard as it happened, across restarts of the companion', async () => {
    const day = await terminal();
    const steps = readTerminalRecording('terminal-day', day.home);
    for (const [index, step] of steps.entries()) {
      if (step.kind === 'hook') await day.hook(step.event, step.input);
      else writeLine(step, Date.now());
      if (index % 40 === 39) {
        await day.disconnect();
        await day.connect();
      }
    }
    const [first, second] = [...new Set(steps.flatMap((step) => (step.kind === 'line' ? [step.sessionId] : [])))];
    const ended = async (id: string) =>
      ((await read(`/sessions/${id}`)) as { session: { state: string } }).session.state;
    await eventually(async () => (await ended(second as string)) === 'exited');
    const turns = await turnsOf(first as string);
    expect(turns.map(({ kind, state }) => `${kind} ${state}`).filter((one) => !one.startsWith('none'))).toEqual([
      ...['user finished', 'between-run finished', 'user finished', 'user finished', 'between-run finished'],
      ...['user interrupted', 'user finished'],
      // /compact
      'user finished',
    ]);
    expect(texts(turns).filter((text) => text === 'Start the poll, please.')).toHaveLength(1);
    expect(texts(turns).filter((text) => text === 'The poll ended with code 3.')).toHaveLength(1);
    const { tasks } = (await read(`/sessions/${first}/tasks`)) as { tasks: Task[] };
    expect(tasks.map(({ status }) => status).sort()).toEqual(['completed', 'completed', 'failed']);
    // /clear started another session and ended this one, in either order.
    await eventually(async () => (await ended(first as string)) === 'exited');
    expect(texts(await turnsOf(second as string))).toEqual(['/clear', 'A new beginning.', 'Hello again.']);
  });
});

describe('late messages', () => {
  test('the last message of a turn belongs to it and answers its prompt when the stop hook arrives a second earlier', async () => {
    const { sessionId, hook, assistant } = await atWork();
    const text = 'It is built.\n\nAll of it.';
    expect(await hook('Stop', { stop_hook_active: false, last_assistant_message: text })).toBe('');
    // The agent is not held, and its message arrives later.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect((await turnsOf(sessionId)).map(({ state }) => state)).toEqual(['open']);
    assistant(text, 'end_turn');
    const [turn, ...others] = await eventually(async () => {
      const turns = await turnsOf(sessionId);
      return turns.some(({ state }) => state === 'finished') && turns;
    });
    expect([others, texts([turn as Turn])]).toEqual([[], ['Build it', text]]);
  });
});

describe('a message from the dashboard', () => {
  test('is given to the agent at the end of its turn, which replies to it', async () => {
    const agentId = `agent ${randomUUID()}`;
    const { sessionId, hook, say, assistant } = await atWork(agentId);
    const { messageId } = await post(`/sessions/${sessionId}/messages`, { text: 'Is it\ndone?', clientId: 'c1' });
    assistant('It is built.');
    const output = await eventually(async () => {
      const answer = await hook('Stop', { stop_hook_active: false });
      return answer.includes('"decision":"block"') && (JSON.parse(answer) as { reason: string });
    });
    expect(output.reason).toMatch(/Message from operator, \d{4}-\d\d-\d\d \d\d:\d\d UTC:\nIs it\ndone\?/);
    expect(output.reason).toContain('Reply in your next message');
    say({ type: 'user', isMeta: true, message: { role: 'user', content: `Stop hook feedback:\n${output.reason}` } });
    assistant('Yes, Mara.');
    expect(await hook('Stop', { stop_hook_active: true })).toBe('');
    say({ type: 'system', subtype: 'turn_duration', durationMs: 9 });
    const turns = await eventually(async () => {
      const all = await turnsOf(sessionId);
      return (
        all.some(({ state, userMessageIds }) => state === 'finished' && userMessageIds.includes(messageId as string)) &&
        all
      );
    });
    const messages = turns.flatMap(({ items }) => items.filter((item): item is MessageItem => item.kind === 'message'));
    expect(messages.find(({ id }) => id === messageId)).toMatchObject({ delivery: 'seen' });
    expect(messages.find(({ text }) => text === 'Yes, Mara.')).toMatchObject({ replyTo: [messageId] });
    expect(messages.find(({ text }) => text === 'It is built.')?.replyTo).toEqual([]);
    const list = await read(`/agents/${encodeURIComponent(agentId)}/reply-obligations`);
    expect(list).toMatchObject({ obligations: [] });
  });

  test('a message is delivered and answered when another companion reads that the agent was held with it', async () => {
    const { sessionId, hook, say, assistant, disconnect, connect } = await atWork();
    const { messageId } = await post(`/sessions/${sessionId}/messages`, { text: '2+2?', clientId: 'c1' });
    assistant('It is built.', 'end_turn');
    const output = await eventually(async () => {
      const answer = await hook('Stop', { stop_hook_active: false });
      return answer.includes('"decision":"block"') && (JSON.parse(answer) as { reason: string });
    });
    await disconnect();
    say({ type: 'user', isMeta: true, message: { role: 'user', content: `Stop hook feedback:\n${output.reason}` } });
    await connect();
    const message = async () =>
      (await turnsOf(sessionId)).flatMap(({ items }) => items as MessageItem[]).find(({ id }) => id === messageId);
    await eventually(async () => ['delivered', 'seen'].includes((await message())?.delivery ?? ''));
    assistant('Four.', 'end_turn');
    expect(await hook('Stop', { stop_hook_active: true })).toBe('');
    say({ type: 'system', subtype: 'turn_duration', durationMs: 9 });
    await eventually(async () => (await turnsOf(sessionId)).every(({ state }) => state !== 'open'));
    expect(await message()).toMatchObject({ delivery: 'seen' });
    const replies = (await turnsOf(sessionId)).flatMap(({ items }) => items as MessageItem[]);
    expect(replies.find(({ text }) => text === 'Four.')).toMatchObject({ replyTo: [messageId] });
  });

  test('does not hold the agent when a tool replied in mid-turn, and is answered when the turn ends', async () => {
    const agentId = randomUUID();
    const { sessionId, home, hook, say, assistant, obligations } = await atWork(agentId);
    const { messageId } = await post(`/sessions/${sessionId}/messages`, { text: 'How far?', clientId: 'c1' });
    await eventually(async () => JSON.stringify(await obligations()).includes(`${messageId}`));
    const control = await readControlFile(controlPath(home, 'hooks'));
    const called = await fetch(`${control?.url}/tools/reply?pid=2147483000,${process.pid}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${control?.secret}` },
      body: JSON.stringify({ messageId, text: 'Half way.' }),
    });
    expect(await called.json()).toMatchObject({ isError: false });
    const all = async () => (await turnsOf(sessionId)).flatMap(({ items }) => items as MessageItem[]);
    await eventually(async () =>
      ['delivered', 'seen'].includes((await all()).find(({ id }) => id === messageId)?.delivery ?? ''),
    );
    assistant('Done.', 'end_turn');
    expect(await hook('Stop', { stop_hook_active: false })).toBe('');
    say({ type: 'system', subtype: 'turn_duration', durationMs: 9 });
    await eventually(async () => (await turnsOf(sessionId)).every(({ state }) => state !== 'open'));
    const openObligations = async () =>
      ((await read(`/agents/${agentId}/reply-obligations`)) as { obligations: { messageId: string }[] }).obligations;
    await eventually(async () => (await openObligations()).every((one) => one.messageId !== messageId));
    expect((await all()).filter(({ text }) => text === 'Half way.')).toMatchObject([{ replyTo: [messageId] }]);
  });

  test('does not hold the agent twice in a row, nor for a prompt of the terminal', async () => {
    const { sessionId, hook, obligations } = await atWork();
    const openAtServer = async () => ((await read(`/sessions/${sessionId}/obligations`)) as SessionObligations).owed;
    // For the server, the person's own prompt awaits a reply.
    await eventually(async () => (await openAtServer()).length === 1);
    expect(await hook('Stop', { stop_hook_active: false })).toBe('');
    await hook('UserPromptSubmit', { prompt: 'more' });
    await post(`/sessions/${sessionId}/messages`, { text: 'Well?', clientId: 'c1' });
    await eventually(async () => JSON.stringify(await obligations()).includes('Well?'));
    expect(await hook('Stop', { stop_hook_active: true })).toBe('');
    const output = await hook('Stop', { stop_hook_active: false });
    expect(output).toContain('Well?');
    expect(output).not.toContain('Build it');
    expect(await hook('SubagentStop', { stop_hook_active: false, agent_id: 'a' })).toBe('');
  });

  test('holds the agent for a pending reply, and not for one that a person waived', async () => {
    const agentId = randomUUID();
    const { sessionId, hook, obligations } = await atWork(agentId);
    const prompts = (messageId: string, delta: string) => [
      { type: 'TEXT_MESSAGE_START', messageId, role: 'user', name: 'Ada' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
      { type: 'TEXT_MESSAGE_END', messageId },
    ];
    const events = [...prompts('m1', 'Is it waived?'), ...prompts('m2', 'Is it pending?')];
    const records = events.map((event, index) => record(index + 1, { agentId, sessionId, event }));
    await ingest(server(), records, 1, `peer of ${agentId}`);
    await post(`/sessions/${sessionId}/obligations/m1/waive`, {}, 200);
    // A command for the agent makes its runner fetch pending replies.
    await post(`/sessions/${sessionId}/messages`, { text: 'Well?', clientId: 'c1' });
    await eventually(async () => JSON.stringify(await obligations()).includes('Is it pending?'));
    const output = await hook('Stop', { stop_hook_active: false });
    expect(output).toContain('Is it pending?');
    expect(output).not.toContain('Is it waived?');
  });

  test('is refused with the reason when the terminal is idle, and when its turn ends without it', async () => {
    const { sessionId, hook, say, prompt, obligations } = await atWork();
    const failed = async (id: string | undefined) => {
      const all = (await turnsOf(sessionId)).flatMap(({ items }) => items) as MessageItem[];
      const message = all.find((item) => item.id === id);
      return message?.delivery === 'failed' && message.deliveryReason;
    };
    const { messageId: late } = await post(`/sessions/${sessionId}/messages`, { text: 'One', clientId: 'c1' });
    await eventually(async () => JSON.stringify(await obligations()).includes('One'));
    // Interrupted in the terminal: no stop hook runs.
    say({
      type: 'user',
      message: { role: 'user', content: [{ type: 'text', text: '[Request interrupted by user]' }] },
    });
    expect(await eventually(() => failed(late))).toMatch(/its turn ended before/);
    await hook('UserPromptSubmit', {});
    // A refused message needs no reply, though the snapshot may not contain that yet.
    expect(await hook('Stop', { stop_hook_active: false })).toBe('');
    const { messageId: idle } = await post(`/sessions/${sessionId}/messages`, { text: 'Two', clientId: 'c2' });
    expect(await eventually(() => failed(idle))).toMatch(/runs in a terminal and is idle\. Type there/);
    prompt('Typed again');
    await eventually(async () => texts(await turnsOf(sessionId)).includes('Typed again'));
  });

  test('never asks a terminal for an action that needs its person', async () => {
    const { sessionId } = await atWork();
    const { commandId } = await post(`/sessions/${sessionId}/interrupt`, {});
    const refusals = await eventually(async () => {
      const all = JSON.stringify(await turnsOf(sessionId));
      return all.includes('press Esc there') && all;
    });
    expect(refusals).toContain('runs in a terminal');
    expect(commandId).toBeTruthy();
  });
});

describe('a companion that missed the end of a turn', () => {
  const session = async (id: string) => ((await read(`/sessions/${id}`)) as { session: SessionSummary }).session;
  /** A process in place of the terminal. */
  async function process() {
    const child = spawn('sleep', ['600'], { stdio: 'ignore' });
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    const kill = async () => {
      child.kill('SIGKILL');
      await ended;
    };
    onTestFinished(kill);
    return { pid: child.pid as number, kill };
  }

  test.each([
    ['finished', 'exited', 'had said its last word', 'end_turn'],
    ['failed', 'exited', 'was in the middle of something', 'tool_use'],
  ])(
    'a restarted companion reports its turn %s and its session %s when the agent %s and exited',
    async (turnState, state, _, reason) => {
      const { pid, kill } = await process();
      const { sessionId, assistant, disconnect, connect } = await atWork(undefined, pid);
      await disconnect();
      assistant('It is built.', reason);
      await kill();
      await connect();
      await eventually(async () => (await session(sessionId)).state === state);
      const turns = await turnsOf(sessionId);
      expect(turns.filter(({ kind }) => kind === 'user').map((turn) => turn.state)).toEqual([turnState]);
      expect(texts(turns)).toEqual(['Build it', 'It is built.']);
    },
  );
});

test('a terminal that exits during its stop hook ends its turn with its last message', async () => {
  const { sessionId, hook, say } = await atWork();
  await post(`/sessions/${sessionId}/messages`, { text: 'Still there?', clientId: 'c1' });
  const content = [{ type: 'text', text: 'It is built.' }];
  say({ type: 'assistant', message: { id: 'msg_last', stop_reason: 'end_turn', content } });
  expect(await hook('SessionEnd', { reason: 'prompt_input_exit' })).toBe('');
  // The session has ended: the hook does not wait for an answer.
  expect(await hook('Stop', { stop_hook_active: false })).toBe('');
  const session = async () => ((await read(`/sessions/${sessionId}`)) as { session: SessionSummary }).session;
  await eventually(async () => (await session()).state === 'exited');
  const turns = await turnsOf(sessionId);
  expect(texts(turns).filter((text) => text === 'It is built.')).toHaveLength(1);
  expect(turns.filter(({ state }) => state === 'open')).toEqual([]);
  expect(turns.find(({ kind }) => kind === 'user')?.state).toBe('finished');
});

test('the log level of a companion can be set while it runs, and survives a restart', async () => {
  const agentId = randomUUID();
  const one = await terminal(agentId);
  const level = async () => (await read(`/agents/${agentId}/log-level`)) as AgentLogLevel;
  const isWritten = async (expected: string) => {
    const { level: written, desired } = await level();
    return written === expected && desired?.state === 'confirmed';
  };
  const hookLines = async () =>
    ((await read(`/agents/${agentId}/logs?level=debug`)) as LogPage).lines.filter(
      ({ level: written, message }) => written === 'debug' && message.startsWith('SessionStart'),
    ).length;
  await eventually(async () => ((await read(`/agents/${agentId}`)) as Partial<AgentDetail>).agent);
  const headers = { authorization: `Bearer ${server().token}`, 'content-type': 'application/json' };
  const put = { method: 'PUT', headers, body: JSON.stringify({ level: 'debug' }) };
  expect((await server().send(`/api/v1/agents/${agentId}/log-level`, put)).status).toBe(202);
  await eventually(() => isWritten('debug'));
  const begin = async () => {
    const sessionId = randomUUID();
    const about = { session_id: sessionId, transcript_path: join(one.home, `${sessionId}.jsonl`) };
    await one.hook('SessionStart', { ...about, hook_event_name: 'SessionStart', source: 'startup' });
  };
  await begin();
  await eventually(async () => (await hookLines()) === 1);
  await one.disconnect();
  await one.connect();
  await begin();
  await eventually(async () => (await hookLines()) === 2);
  await eventually(() => isWritten('debug'));
});

test('a dead hook is reported in its session and in the log', async () => {
  const { sessionId, home } = await atWork();
  const control = await readControlFile(controlPath(home, 'hooks'));
  const headers = { authorization: `Bearer ${control?.secret}` };
  const body = JSON.stringify({ session_id: sessionId });
  const path = '/hook-fatal?hook=Stop&error=exit%203:%20read+the+input';
  expect((await fetch(control?.url + path, { method: 'POST', headers, body })).status).toBe(200);
  await eventually(async () => JSON.stringify(await turnsOf(sessionId)).includes('The Stop hook failed (exit 3'));
});

test('a dead hook is marked on its session and on the agent', async () => {
  const agentId = randomUUID();
  const { sessionId, home } = await atWork(agentId);
  const control = await readControlFile(controlPath(home, 'hooks'));
  const headers = { authorization: `Bearer ${control?.secret}` };
  const body = JSON.stringify({ session_id: sessionId });
  const path = '/hook-fatal?hook=Stop&error=exit%203:%20API_KEY=abc123def456';
  expect((await fetch(control?.url + path, { method: 'POST', headers, body })).status).toBe(200);
  const agent = () => read(`/agents/${agentId}`) as Promise<AgentDetail>;
  const [insight] = await eventually(async () => {
    const { insights } = await agent();
    return insights.length > 0 && insights;
  });
  expect(insight).toMatchObject({
    signal: 'hook_fatal',
    outcome: 'failed',
    source: 'Stop',
    isFailure: true,
    sessionId,
    detail: 'exit 3: API_KEY=[redacted: api-key]',
    seenAt: null,
  });
  const { lines } = (await read(`/agents/${agentId}/logs?level=fatal`)) as LogPage;
  expect(lines).toMatchObject([{ position: insight?.position, component: 'hook:Stop', level: 'fatal', redacted: 1 }]);
  const { session } = (await read(`/sessions/${sessionId}`)) as { session: SessionSummary };
  expect([session.insightCount, (await agent()).agent.insightCount]).toEqual([1, 1]);
});

test('a real hook that dies before it reads its session marks every open session of its agent', async () => {
  const agentId = randomUUID();
  const { sessionId, home } = await atWork(agentId);
  const broken = await tempDir();
  writeFileSync(join(broken, 'cat'), '#!/bin/sh\nexit 3\n', { mode: 0o755 });
  const script = fileURLToPath(new URL('../../lib/runner/hooks/hook.sh', import.meta.url));
  const env = { PATH: `${broken}${delimiter}${process.env.PATH}` } as unknown as NodeJS.ProcessEnv;
  const child = spawn('/bin/sh', [script, 'Stop', home], { env, stdio: ['pipe', 'ignore', 'ignore'] });
  const code = await new Promise((resolve) => child.once('exit', resolve));
  expect(code).toBe(0);
  const session = async () => ((await read(`/sessions/${sessionId}`)) as { session: SessionSummary }).session;
  await eventually(async () => (await session()).insightCount === 1);
  const { insights } = (await read(`/agents/${agentId}`)) as AgentDetail;
  expect(insights).toMatchObject([{ source: 'Stop', sessionId: null, detail: 'exit 3: read the input' }]);
});
