import { join } from 'node:path';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { controlPath, readControlFile } from '@interlude/runner/host/control-file';
import { expect, test } from 'vitest';
import { scriptedTerminals } from '../support/terminal-companion';
import { resolvesWithin } from '../support/timing';

const { atWork, read, turnsOf, texts, post, eventually } = scriptedTerminals();

test('the stop hook’s last message ends a turn whose transcript line is late, and appears once', async () => {
  const { sessionId, hook, assistant, prompt } = await atWork();
  await hook('Stop', { stop_hook_active: false, last_assistant_message: 'It is built.' });
  const finished = async () => {
    const turns = await turnsOf(sessionId);
    return turns.some(({ state }) => state === 'finished') && turns;
  };
  expect(texts(await eventually(finished))).toEqual(['Build it', 'It is built.']);
  assistant('It is built.', 'end_turn');
  await hook('UserPromptSubmit', { prompt: 'And?' });
  prompt('And?');
  await eventually(async () => texts(await turnsOf(sessionId)).includes('And?'));
  expect(texts(await turnsOf(sessionId))).toEqual(['Build it', 'It is built.', 'And?']);
});

test('a companion that missed the end of a turn reports its session idle after a restart', async () => {
  const { sessionId, assistant, disconnect, connect } = await atWork();
  await disconnect();
  assistant('It is built.', 'end_turn');
  await connect();
  const session = async () => ((await read(`/sessions/${sessionId}`)) as { session: SessionSummary }).session;
  await eventually(async () => (await session()).state === 'idle');
  const turns = await turnsOf(sessionId);
  expect(turns.filter(({ kind }) => kind === 'user').map(({ state }) => state)).toEqual(['finished']);
  expect(texts(turns)).toEqual(['Build it', 'It is built.']);
});

test('a terminal that exits after its stop hook started ends its turn with its last message', async () => {
  const { sessionId, hook, say } = await atWork();
  await post(`/sessions/${sessionId}/messages`, { text: 'Still there?', clientId: 'c1' });
  const content = [{ type: 'text', text: 'It is built.' }];
  say({ type: 'assistant', message: { id: 'msg_last', stop_reason: 'end_turn', content } });
  await hook('Stop', { stop_hook_active: false });
  await hook('SessionEnd', { reason: 'prompt_input_exit' });
  const session = async () => ((await read(`/sessions/${sessionId}`)) as { session: SessionSummary }).session;
  await eventually(async () => (await session()).state === 'exited');
  const turns = await turnsOf(sessionId);
  expect(texts(turns).filter((text) => text === 'It is built.')).toHaveLength(1);
  expect(turns.filter(({ state }) => state === 'open')).toEqual([]);
  expect(turns.find(({ kind }) => kind === 'user')?.state).toBe('finished');
});

test('a session ends within 12 s of its terminal’s death', async () => {
  const { sessionId, home } = await atWork();
  const control = await readControlFile(controlPath(home, 'hooks'));
  const headers = { authorization: `Bearer ${control?.secret}` };
  const file = join(home, `${sessionId}.jsonl`);
  const body = JSON.stringify({ session_id: sessionId, transcript_path: file });
  // Beyond the largest process id.
  await fetch(`${control?.url}/hooks/UserPromptSubmit?pid=4194305`, { method: 'POST', headers, body });
  const state = async () => ((await read(`/sessions/${sessionId}`)) as { session: { state: string } }).session.state;
  await resolvesWithin(12_000, expect.poll(state).not.toBe('working'));
});
