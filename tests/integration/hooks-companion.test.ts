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

/** The companion of terminal sessions against the real server. The terminal is played: hooks and transcript lines. */

const { server, terminal, atWork, read, turnsOf, texts, post, eventually } = scriptedTerminals();

describe('a day in a terminal', () => {
  test('is in the dashboard as it was, over restarts of the companion', async () => {
    const day = await terminal();
    const steps = readTerminalRecording('terminal-day', day.home);
    for (const [at, step] of steps.entries()) {
      if (step.kind === 'hook') await day.hook(step.event, step.input);
      else writeLine(step, Date.now());
      if (at % 40 === 39) {
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
    // /clear began another session, and ended this one. They don't wait for each other.
    await eventually(async () => (await ended(first as string)) === 'exited');
    expect(texts(await turnsOf(second as string))).toEqual(['/clear', 'A new beginning.', 'Hello again.']);
  });
});

describe('the last words of a turn', () => {
  test('belong to it and answer its prompt, when the stop hook comes a second before them', async () => {
    const { sessionId, hook, assistant } = await atWork();
    const text = 'It is built.\n\nAll of it.';
    expect(await hook('Stop', { stop_hook_active: false, last_assistant_message: text })).toBe('');
    // The agent is not held, and its words come later.
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
  test('is put before the agent when its turn ends, and its answer is a reply to it', async () => {
    const agentId = `agent ${randomUUID()}`;
    const { sessionId, hook, say, assistant } = await atWork(agentId);
    const { messageId } = await post(`/sessions/${sessionId}/messages`, { text: 'Is it\ndone?', clientId: 'c1' });
    assistant('It is built.');
    const held = await eventually(async () => {
      const answer = await hook('Stop', { stop_hook_active: false });
      return answer.includes('"decision":"block"') && (JSON.parse(answer) as { reason: string });
    });
    expect(held.reason).toMatch(/Message from operator, \d{4}-\d\d-\d\d \d\d:\d\d UTC:\nIs it\ndone\?/);
    expect(held.reason).toContain('Reply in your next message');
    say({ type: 'user', isMeta: true, message: { role: 'user', content: `Stop hook feedback:\n${held.reason}` } });
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
    const owed = await read(`/agents/${encodeURIComponent(agentId)}/reply-obligations`);
    expect(owed).toMatchObject({ obligations: [] });
  });

  test('that the agent was held with is delivered and answered, though another companion reads that it was', async () => {
    const { sessionId, hook, say, assistant, disconnect, connect } = await atWork();
    const { messageId } = await post(`/sessions/${sessionId}/messages`, { text: '2+2?', clientId: 'c1' });
    assistant('It is built.', 'end_turn');
    const held = await eventually(async () => {
      const answer = await hook('Stop', { stop_hook_active: false });
      return answer.includes('"decision":"block"') && (JSON.parse(answer) as { reason: string });
    });
    await disconnect();
    say({ type: 'user', isMeta: true, message: { role: 'user', content: `Stop hook feedback:\n${held.reason}` } });
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

  test('that the agent answers with a tool in mid-turn does not hold it, and is answered when the turn ends', async () => {
    const agentId = randomUUID();
    const { sessionId, home, hook, say, assistant, owed } = await atWork(agentId);
    const { messageId } = await post(`/sessions/${sessionId}/messages`, { text: 'How far?', clientId: 'c1' });
    await eventually(async () => JSON.stringify(await owed()).includes(`${messageId}`));
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
    const stillOwed = async () =>
      ((await read(`/agents/${agentId}/reply-obligations`)) as { obligations: { messageId: string }[] }).obligations;
    await eventually(async () => (await stillOwed()).every((one) => one.messageId !== messageId));
    expect((await all()).filter(({ text }) => text === 'Half way.')).toMatchObject([{ replyTo: [messageId] }]);
  });

  test('does not hold the agent twice in a row, nor for what was typed in the terminal', async () => {
    const { sessionId, hook, owed } = await atWork();
    const owedAtServer = async () => ((await read(`/sessions/${sessionId}/obligations`)) as SessionObligations).owed;
    // The person's own prompt is owed an answer as far as the server knows.
    await eventually(async () => (await owedAtServer()).length === 1);
    expect(await hook('Stop', { stop_hook_active: false })).toBe('');
    await hook('UserPromptSubmit', { prompt: 'more' });
    await post(`/sessions/${sessionId}/messages`, { text: 'Well?', clientId: 'c1' });
    await eventually(async () => JSON.stringify(await owed()).includes('Well?'));
    expect(await hook('Stop', { stop_hook_active: true })).toBe('');
    const held = await hook('Stop', { stop_hook_active: false });
    expect(held).toContain('Well?');
    expect(held).not.toContain('Build it');
    expect(await hook('SubagentStop', { stop_hook_active: false, agent_id: 'a' })).toBe('');
  });

  test('holds the agent for a reply that is owed, and not for one that a person has waived', async () => {
    const agentId = randomUUID();
    const { sessionId, hook, owed } = await atWork(agentId);
    const asks = (messageId: string, delta: string) => [
      { type: 'TEXT_MESSAGE_START', messageId, role: 'user', name: 'Ada' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
      { type: 'TEXT_MESSAGE_END', messageId },
    ];
    const events = [...asks('m1', 'Is it waived?'), ...asks('m2', 'Is it owed?')];
    const records = events.map((event, at) => record(at + 1, { agentId, sessionId, event }));
    await ingest(server(), records, 1, `peer of ${agentId}`);
    await post(`/sessions/${sessionId}/obligations/m1/waive`, {}, 200);
    // What comes for the agent has its runner ask anew what is owed.
    await post(`/sessions/${sessionId}/messages`, { text: 'Well?', clientId: 'c1' });
    await eventually(async () => JSON.stringify(await owed()).includes('Is it owed?'));
    const held = await hook('Stop', { stop_hook_active: false });
    expect(held).toContain('Is it owed?');
    expect(held).not.toContain('Is it waived?');
  });

  test('is refused with the reason when the terminal is idle, and when its turn ends without taking it', async () => {
    const { sessionId, hook, say, prompt, owed } = await atWork();
    const failed = async (id: string | undefined) => {
      const all = (await turnsOf(sessionId)).flatMap(({ items }) => items) as MessageItem[];
      const message = all.find((item) => item.id === id);
      return message?.delivery === 'failed' && message.deliveryReason;
    };
    const { messageId: late } = await post(`/sessions/${sessionId}/messages`, { text: 'One', clientId: 'c1' });
    await eventually(async () => JSON.stringify(await owed()).includes('One'));
    // Interrupted in the terminal: no stop hook runs then.
    say({
      type: 'user',
      message: { role: 'user', content: [{ type: 'text', text: '[Request interrupted by user]' }] },
    });
    expect(await eventually(() => failed(late))).toMatch(/its turn ended before/);
    await hook('UserPromptSubmit', {});
    // What was refused is owed no more, though the snapshot may not know yet.
    expect(await hook('Stop', { stop_hook_active: false })).toBe('');
    const { messageId: idle } = await post(`/sessions/${sessionId}/messages`, { text: 'Two', clientId: 'c2' });
    expect(await eventually(() => failed(idle))).toMatch(/runs in a terminal and is idle\. Type there/);
    prompt('Typed again');
    await eventually(async () => texts(await turnsOf(sessionId)).includes('Typed again'));
  });

  test('never asks a terminal for what only the person there can do', async () => {
    const { sessionId } = await atWork();
    const { commandId } = await post(`/sessions/${sessionId}/interrupt`, {});
    const said = await eventually(async () => {
      const all = JSON.stringify(await turnsOf(sessionId));
      return all.includes('press Esc there') && all;
    });
    expect(said).toContain('runs in a terminal');
    expect(commandId).toBeTruthy();
  });
});

describe('a companion that was not there when the turn ended', () => {
  const session = async (id: string) => ((await read(`/sessions/${id}`)) as { session: SessionSummary }).session;
  /** A process like the terminal's. */
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
  ])('has its turn %s and its session %s, where the agent %s and is gone', async (turnState, state, _, reason) => {
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
  });
});

test('a terminal left while its stop hook runs ends its turn with its last word', async () => {
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

test('the log level of a companion is turned while it runs, and is as it was after a restart', async () => {
  const agentId = randomUUID();
  const one = await terminal(agentId);
  const level = async () => (await read(`/agents/${agentId}/log-level`)) as AgentLogLevel;
  const isWritten = async (wanted: string) => {
    const { level: written, desired } = await level();
    return written === wanted && desired?.state === 'confirmed';
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

test('a hook that died is told in the session it belongs to, and in the log', async () => {
  const { sessionId, home } = await atWork();
  const control = await readControlFile(controlPath(home, 'hooks'));
  const headers = { authorization: `Bearer ${control?.secret}` };
  const body = JSON.stringify({ session_id: sessionId });
  const path = '/hook-fatal?hook=Stop&error=exit%203:%20read+the+input';
  expect((await fetch(control?.url + path, { method: 'POST', headers, body })).status).toBe(200);
  await eventually(async () => JSON.stringify(await turnsOf(sessionId)).includes('The Stop hook failed (exit 3'));
});

test('a hook that died wants a look: of the session it says, and of the agent', async () => {
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

test('the real hook, dying before it knows its session, marks all that its agent has open', async () => {
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
