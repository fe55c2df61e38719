import type { IngestResponse } from '@interlude/protocol/envelope';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { MAX_RECORD_BYTES } from '@interlude/protocol/limits';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AccessStage, type Headers } from '../../support/access-stage';
import { marker, record } from '../../support/ingest-target';

let stage: AccessStage;
/** The runner of the agent `mine`. */
let mine: Headers;
beforeAll(async () => {
  stage = await AccessStage.start();
  const { id: _, ...headers } = await stage.token({ agent: 'mine' });
  mine = headers;
});
afterAll(() => stage.close());

let epochs = 0;
/** Sends records with its own outbox. */
async function send(records: object[], { as = mine, id = 'mine/outbox', epoch = ++epochs } = {}) {
  const body = { producer: { id, epoch }, records };
  const response = await stage.send('/api/v1/events', { method: 'POST', as, body });
  return { status: response.status, ...((await response.json()) as IngestResponse & { error?: { code: string } }) };
}
const own = (seq: number, event: object) => record(seq, { agentId: 'mine', sessionId: 's-mine', event });
const rows = async (sql: string) =>
  (await stage.parts.database.reader.execute(sql)).rows.map((row) => Object.values(row));

describe('a runner with a token for one agent', () => {
  test('writes only with outboxes of that agent', async () => {
    expect(await send([own(1, { type: 'CUSTOM', name: 'marker' })])).toMatchObject({ status: 200, accepted: 1 });
    for (const id of ['other', 'mine-2', 'mine2/outbox']) {
      expect(await send([marker(1)], { id })).toMatchObject({ status: 403, error: { code: 'forbidden' } });
    }
  });

  test('cannot write with an outbox that another agent used', async () => {
    await send([marker(1, { agentId: 'other' })], { as: stage.owner, id: 'mine/borrowed' });
    expect(await send([own(1, { type: 'CUSTOM', name: 'marker' })], { id: 'mine/borrowed' })).toMatchObject({
      ...{ status: 403, error: { code: 'forbidden' } },
    });
  });

  test('gets records about another agent quarantined under its own', async () => {
    const foreign = marker(1, { agentId: 'other', sessionId: 's-other' });
    expect(await send([foreign])).toMatchObject({
      accepted: 0,
      rejected: [{ seq: 1, code: 'agent_of_another_token' }],
    });
    expect(await rows(`SELECT agent_id, session_id FROM quarantine WHERE code = 'agent_of_another_token'`)).toEqual([
      ['mine', null],
    ]);
    expect(await rows(`SELECT 1 FROM sessions WHERE id = 's-other'`)).toEqual([]);
  });

  test('gets events quarantined that only the server may write', async () => {
    const said = [CUSTOM.commandDone, CUSTOM.obligationWaived, CUSTOM.removed];
    const { rejected } = await send(said.map((name, index) => own(index + 1, { type: 'CUSTOM', name, value: {} })));
    expect(rejected.map(({ code }) => code)).toEqual(said.map(() => 'reserved_name'));
  });

  test('gets no position of a foreign outbox', async () => {
    const { position } = await send([own(1, { type: 'CUSTOM', name: 'marker' })], { id: 'mine/again', epoch: 1 });
    await send([marker(1, { agentId: 'other' })], { as: stage.owner, id: 'busy' });
    const again = await send([own(1, { type: 'CUSTOM', name: 'marker' })], { id: 'mine/again', epoch: 1 });
    expect([Number(position) > 0, again.duplicates, again.position]).toEqual([true, 1, '0']);
  });
});

describe('a record', () => {
  test('is quarantined when it names a session of another agent, and the next one is accepted', async () => {
    await send([marker(1, { agentId: 'first', sessionId: 's-first' })], { as: stage.owner, id: 'p-first' });
    const records = [
      marker(1, { agentId: 'second', sessionId: 's-first' }),
      marker(2, { agentId: 'second', sessionId: 's-second' }),
    ];
    const response = await send(records, { as: stage.owner, id: 'p-second' });
    expect(response).toMatchObject({
      ackedSeq: 2,
      accepted: 1,
      rejected: [{ seq: 1, code: 'session_of_another_agent' }],
    });
    expect(await rows(`SELECT record->>'$.seq' FROM quarantine WHERE code = 'session_of_another_agent'`)).toEqual([
      [1],
    ]);
  });

  test('is quarantined whole when it is too large, and the next one is accepted', async () => {
    const large = own(1, { type: 'CUSTOM', name: 'large', value: 'x'.repeat(MAX_RECORD_BYTES) });
    const response = await send([large, own(2, { type: 'CUSTOM', name: 'marker' })]);
    expect(response).toMatchObject({ ackedSeq: 2, accepted: 1, rejected: [{ seq: 1, code: 'record_too_large' }] });
    expect(
      await rows(`SELECT octet_length(record) > ${MAX_RECORD_BYTES} FROM quarantine
      WHERE code = 'record_too_large'`),
    ).toEqual([[1]]);
  });
});

test('a new outbox whose epoch is over a minute ahead is refused with the server’s time', async () => {
  const ahead = async (ms: number) => send([marker(1)], { as: stage.owner, id: `ahead ${ms}`, epoch: Date.now() + ms });
  expect((await ahead(50_000)).status).toBe(200);
  for (const ms of [90_000, 23 * 3_600_000]) {
    const before = Date.now();
    const { status, error } = await ahead(ms);
    expect([status, error]).toEqual([409, expect.objectContaining({ code: 'epoch_ahead', currentEpoch: null })]);
    expect(Number((error as unknown as { now: number }).now)).toBeGreaterThanOrEqual(before);
  }
});
