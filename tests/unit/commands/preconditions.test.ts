import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { RequestDetail } from '@interlude/protocol/read-models';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { AccessStage } from '../../support/access-stage';
import { idsOf } from '../../support/frames';

/** A command applies to what its sender saw, once. */
const T0 = 1_795_170_000_000;
let now: number;
let stage: AccessStage;
beforeEach(async () => {
  now = T0;
  seq = 0;
  vi.spyOn(Date, 'now').mockImplementation(() => now);
  stage = await AccessStage.start();
});
afterEach(async () => {
  await stage.close();
  vi.restoreAllMocks();
});

let seq = 0;
const tell = (...events: AgUiEvent[]) =>
  stage.ask('/events', {
    method: 'POST',
    body: {
      producer: { id: 'p1', epoch: 1 },
      records: events.map((event) => {
        seq += 1;
        return { seq, kind: 'event', agentId: 'a1', sessionId: 's1', occurredAt: now, event };
      }),
    },
  });
const custom = (name: string, value: object): AgUiEvent => ({ type: 'CUSTOM', name, value });
const starts = (runId: string): AgUiEvent => ({ type: 'RUN_STARTED', threadId: 's1', runId });
/** A turn without a message. */
const wakes = (runId: string): AgUiEvent => ({
  ...starts(runId),
  metadata: { interlude: { turn: 'between-run' } },
});
const ends = (runId: string): AgUiEvent => ({ type: 'RUN_FINISHED', threadId: 's1', runId });
const says = (messageId: string, role: string, delta: string): AgUiEvent[] => [
  { type: 'TEXT_MESSAGE_START', messageId, role },
  { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
  { type: 'TEXT_MESSAGE_END', messageId },
];

/** @returns the status and the reason of the refusal */
async function post(path: string, body: object): Promise<[number, string | null]> {
  const response = await stage.send(`/api/v1/sessions/s1${path}`, { method: 'POST', body });
  const { error } = (await response.json()) as { error?: { code: string; reason?: string } };
  return [response.status, error?.reason ?? error?.code ?? null];
}

describe('an answer to a request', () => {
  const asks = (command: string, more = {}) =>
    custom('request:opened', {
      ...{ request_id: 'q1', kind: 'permission', tool_name: 'Bash', input: { command } },
      ...more,
    });
  const answer = (body: object) => post('/requests/q1', { behavior: 'allow', ...body });
  const digest = async () => (await stage.ask<RequestDetail>('/sessions/s1/requests/q1')).request.digest;

  test('is accepted once', async () => {
    await tell(starts('r1'), asks('ls'));
    expect(await answer({ digest: await digest() })).toEqual([202, null]);
    expect(await answer({ digest: await digest() })).toEqual([409, 'request_answered']);
  });

  test('is refused when the request has changed', async () => {
    await tell(starts('r1'), asks('ls'));
    const before = await digest();
    await tell(asks('rm -rf /'));
    expect(await answer({ digest: before })).toEqual([409, 'request_changed']);
    expect(await answer({ digest: await digest() })).toEqual([202, null]);
  });

  test('is refused once the request is resolved', async () => {
    await tell(starts('r1'), asks('ls'), custom('request:resolved', { request_id: 'q1', outcome: 'denied' }));
    expect(await answer({})).toEqual([409, 'request_resolved']);
  });

  test('is refused after the request’s deadline', async () => {
    await tell(starts('r1'), asks('ls', { expires_at: T0 + 60_000 }));
    now = T0 + 60_000;
    expect(await answer({})).toEqual([409, 'request_expired']);
  });

  test('must be an offered option of the same behavior', async () => {
    await tell(starts('r1'), asks('ls', { options: [{ id: 'no', label: 'No', kind: 'deny' }] }));
    expect(await answer({ optionId: 'yes' })).toEqual([400, 'invalid_argument']);
    expect(await answer({ optionId: 'no' })).toEqual([400, 'invalid_argument']);
    expect(await answer({ behavior: 'deny', optionId: 'no' })).toEqual([202, null]);
  });
});

test('interrupts only the turn that was meant', async () => {
  await tell(starts('r1'));
  await tell(ends('r1'), starts('r2'));
  expect(await post('/interrupt', { turnId: 'r1' })).toEqual([409, 'turn_ended']);
  expect(await post('/interrupt', { turnId: 'r2' })).toEqual([202, null]);
});

test('accepts a clientId once, and refuses it for another request', async () => {
  await tell(starts('r1'));
  const sends = (text: string) => post('/messages', { text, clientId: 'c1' });
  expect([await sends('Hello'), await sends('Hello'), await sends('Bye')]).toEqual([
    [202, null],
    [202, null],
    [409, 'client_id_reused'],
  ]);
  const { rows } = await stage.parts.database.reader.execute(`SELECT body->>'$.text' AS text FROM commands`);
  expect(rows.map(({ text }) => text)).toEqual(['Hello']);
});

describe('a pending reply', () => {
  test('is waived once', async () => {
    await tell(...says('m1', 'user', 'And?'));
    expect(await post('/obligations/m1/waive', {})).toEqual([200, null]);
    expect(await post('/obligations/m1/waive', {})).toEqual([409, 'obligation_settled']);
  });

  test('can’t be waived after it was answered', async () => {
    const answers = { ...ends('r1'), metadata: { interlude: { userMessageIds: ['m1'] } } };
    await tell(...says('m1', 'user', 'And?'), starts('r1'), answers);
    expect(await post('/obligations/m1/waive', {})).toEqual([409, 'obligation_settled']);
  });

  test('is settled only by the text that was shown', async () => {
    await tell(...says('m1', 'user', 'And?'), wakes('r1'), ...says('t1', 'assistant', 'Yes.'), ends('r1'));
    await tell(wakes('r2'), ...says('t2', 'assistant', 'No!'), ends('r2'));
    expect(await post('/obligations/m1/accept', { candidateId: 't1' })).toEqual([409, 'candidate_changed']);
    expect(await post('/obligations/m1/accept', { candidateId: 't2' })).toEqual([200, null]);
  });
});

test('a stream prefers Last-Event-ID over the query', async () => {
  await tell(starts('r1'), ends('r1'));
  const reader = await stage.stream('/stream?topic=session:s1&after=0', stage.owner, {
    headers: { 'last-event-id': '1' },
  });
  await reader.frame('up-to-date');
  expect(idsOf(reader.frames)).toEqual([2]);
});
