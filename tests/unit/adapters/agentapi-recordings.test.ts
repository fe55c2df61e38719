import { AgentApiAdapter } from '@interlude/runner/adapters/agentapi/agentapi-adapter';
import type { RecordedLine } from '@interlude/runner/adapters/recordings';
import { RECORDED_KINDS } from '@interlude/runner/adapters/recordings';
import { describe, expect, test } from 'vitest';
import { eventLines, expectValidEvents, playRecorded, recordedLines, recordingsOf } from '../../support/recordings';

const count = (text: string, part: string) => text.split(part).length - 1;
const heard = (at: number, msg: unknown): RecordedLine => ({ at, fields: { dir: 'in', at, msg } });

describe.each(recordingsOf('agentapi'))('the recording %s', (name) => {
  const lines = recordedLines('agentapi', name);

  test('matches its golden file', async () => {
    const told = eventLines(playRecorded('agentapi', lines));
    await expect(told).toMatchFileSnapshot(`../../fixtures/golden/agentapi/${name}.txt`);
  });

  test('is recognized by its lines', () => {
    const kinds = Object.entries(RECORDED_KINDS).filter(([, { recognizes }]) => lines.some(recognizes));
    expect(kinds.map(([kind]) => kind)).toEqual(['agentapi']);
  });

  test('is well formed when cut at any frame', () => {
    for (let until = 0; until <= lines.length; until += 1)
      expectValidEvents(playRecorded('agentapi', lines.slice(0, until)));
  });

  test('drops doubled incoming frames', () => {
    const twice = lines.flatMap((line) => {
      const { event } = line.fields.msg as { event?: string };
      return line.fields.dir === 'in' && event !== undefined ? [line, line] : [line];
    });
    expect(eventLines(playRecorded('agentapi', twice))).toBe(eventLines(playRecorded('agentapi', lines)));
  });

  test('is well formed with garbage after each frame', () => {
    const garbage = [
      null,
      7,
      [],
      {},
      { event: 'message_update', data: { id: -1.5, role: 'agent', message: 'x' } },
      { event: 'message_update', data: { id: 99, role: 'system', message: 'x' } },
      { event: 'status_change', data: { status: 'dancing' } },
      { event: 'agent_error', data: 5 },
      { event: '__proto__', data: {} },
      { answer: 'messages', status: 200, body: { messages: [null, { id: 'x' }, { id: 4, role: 'agent' }] } },
      { answer: 'message', status: 500, body: '' },
    ];
    expectValidEvents(
      playRecorded(
        'agentapi',
        lines.flatMap((line, index) => [line, heard(line.at, garbage[index % garbage.length])]),
      ),
    );
  });
});

test('puts each reply into the turn that caused it, once', () => {
  const text = eventLines(playRecorded('agentapi', recordedLines('agentapi', 'background')));
  expect(count(text, 'It runs.')).toBe(1);
  expect(count(text, 'failed with code 3.')).toBe(1);
  expect(count(text, 'Welcome')).toBe(1);
  expect(text).toMatch(/"turn":"between-run","trigger":\{"kind":"unknown".*\n.*\n.*The poll has failed with code 3/);
});

test('bounds a message, a screen and an error of 3 MB', () => {
  const big = 'x\n'.repeat(1.5 * 1024 * 1024);
  const event = (name: string, data: object) => heard(1, { event: name, data });
  const told = playRecorded('agentapi', [
    heard(0, { connection: 'opened' }),
    event('message_update', { id: 0, role: 'agent', message: big, time: '1' }),
    event('message_update', { id: 1, role: 'user', message: big, time: '2' }),
    event('status_change', { status: 'running' }),
    event('message_update', { id: 2, role: 'agent', message: big, time: '3' }),
    event('message_update', { id: 3, role: 'user', message: big, time: '4' }),
    event('agent_error', { message: big, level: 'error', time: big }),
    event('screen', { screen: `${big}❯ 1. ${big}  2. No` }),
    event(big, { big }),
    event('status_change', { status: 'stable' }),
  ]);
  expectValidEvents(told);
});

test('resumes a killed adapter without repeats', () => {
  const lines = recordedLines('agentapi', 'background').filter(({ fields }) => fields.dir === 'in');
  const newAdapter = (progress?: string) =>
    new AgentApiAdapter({ sessionOf: () => 's', newRunId: () => `r${Math.random()}`, progress: progress ?? null });
  const play = (adapter: AgentApiAdapter, some: readonly RecordedLine[]) =>
    some.flatMap(({ at, fields: { msg } }) => adapter.read({ dir: 'in', msg }, at));
  const whole = [...lines];
  for (let killed = 1; killed < lines.length; killed += 1) {
    const first = newAdapter();
    const before = play(first, whole.slice(0, killed));
    // The next adapter gets the whole history again, as AgentAPI replays it.
    const messages = new Map<unknown, RecordedLine>();
    for (const line of whole.slice(0, killed)) {
      const { event, data } = line.fields.msg as { event?: string; data?: { id?: number } };
      if (event === 'message_update') messages.set(data?.id, line);
    }
    const replay = [
      heard(0, { connection: 'opened' }),
      ...messages.values(),
      heard(0, { event: 'status_change', data: { status: 'running' } }),
    ];
    const after = play(newAdapter(first.progress), replay);
    const text = eventLines([...before, ...after]);
    for (const said of ['It runs.', 'failed with code 3.', 'You are welcome.', 'Welcome │', 'Bash(./poll.sh)']) {
      expect([killed, said, count(text, said) <= 1]).toEqual([killed, said, true]);
    }
  }
});
