import { gzipSync } from 'node:zlib';
import { parseWellFormed } from '@interlude/protocol/json';
import { MAX_JSON_DEPTH, MAX_RECORD_BYTES, MAX_REQUEST_BYTES } from '@interlude/protocol/limits';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, type IngestTarget, ingest, marker, record, sendEvents } from '../support/ingest-target';

/** `POST /events`, as every server must implement it. Each test writes as its own producer. */
export function describeIngestContract(name: string, makeTarget: () => Promise<IngestTarget>): void {
  describe(`POST /events, ${name}`, () => {
    let target: IngestTarget;
    let serial = 0;
    let id = '';
    const producer = (epoch = 1) => ({ id, epoch });
    const own = (fields: Record<string, unknown> = {}) => ({
      agentId: `agent-${id}`,
      sessionId: `session-${id}`,
      ...fields,
    });
    const mark = (seq: number, fields: Record<string, unknown> = {}) => marker(seq, own(fields));
    const rows = async (table: string, column = 'producer_id') => {
      const all = (await target.dump())[table] as Record<string, unknown>[];
      return all.filter((row) => row[column] === id);
    };
    const stored = async () => (await rows('events')).map((row) => JSON.parse(String(row.payload)));

    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(() => target.close());
    const test = (title: string, run: () => Promise<void>) =>
      it(title, async () => {
        serial += 1;
        id = `producer-${serial}`;
        await run();
      });

    describe('accepted records', () => {
      test('are stored before the response, for every kind', async () => {
        const response = await ingest(
          target,
          [
            mark(1),
            record(2, own({ kind: 'log', log: { level: 'info', component: 'mirror', message: 'here' } })),
            record(3, own({ kind: 'status', status: { kind: 'claude', state: 'idle' } })),
            record(4, own({ kind: 'lost', lost: { count: 12, reason: 'outbox-full' } })),
          ],
          1,
          id,
        );
        expect(response).toEqual({
          ackedSeq: 4,
          accepted: 4,
          duplicates: 0,
          rejected: [],
          position: expect.stringMatching(/^[1-9]\d*$/),
        });
        expect(await stored()).toEqual([
          { type: 'CUSTOM', name: 'marker', value: 1 },
          { type: 'CUSTOM', name: 'interlude:lost', value: { count: 12, reason: 'outbox-full' } },
        ]);
        expect(await rows('producers', 'id')).toMatchObject([{ last_seq: 4, accepted: 4, lost: 12 }]);
      });

      test('keep unknown types and fields', async () => {
        const event = { type: 'X_FROM_THE_FUTURE', deep: { er: [1, null, 'ü\u0000😀'] }, __proto__x: 1 };
        await ingest(target, [record(1, own({ event, alsoUnknown: true }))], 1, id);
        expect(await stored()).toEqual([event]);
      });

      test('keep fields named `__proto__`', async () => {
        const parsed = (text: string): Record<string, unknown> => JSON.parse(text);
        const event = parsed('{"type":"X","__proto__":{"x":1},"value":{"__proto__":2}}');
        const status = parsed('{"kind":"x","__proto__":{"x":1}}');
        const records = [record(1, own({ event })), record(2, own({ kind: 'status', status }))];
        await ingest(target, records, 1, id);
        expect((await stored()).map((one) => JSON.stringify(one))).toEqual([JSON.stringify(event)]);
        const agents = (await target.dump()).agents as { id: string; body: string }[];
        expect(agents.find((agent) => agent.id === `agent-${id}`)?.body).toContain('"__proto__":{"x":1}');
      });

      test('have lone surrogates replaced by U+FFFD, also in quarantine', async () => {
        const deep = { 'k\ud83d': ['a\ud83d', { b: '\ude00c' }] };
        const novelty = record(2, own({ kind: 'novelty\ud83d', deep }));
        await ingest(target, [record(1, own({ event: { type: 'X\udfff', deep } })), novelty], 1, id);
        const repaired = { 'k\ufffd': ['a\ufffd', { b: '\ufffdc' }] };
        expect(await stored()).toMatchObject([{ type: 'X\ufffd', deep: repaired }, { name: 'interlude:quarantined' }]);
        const [kept] = await rows('quarantine', 'producer_id');
        expect(JSON.parse(String(kept?.record))).toMatchObject({ kind: 'novelty\ufffd', deep: repaired });
      });

      test('are acknowledged again when repeated, and stored once', async () => {
        await ingest(target, [mark(1), mark(2)], 1, id);
        const again = await ingest(target, [mark(1), mark(2)], 1, id);
        expect(again).toMatchObject({ ackedSeq: 2, accepted: 0, duplicates: 2, rejected: [] });
        expect(await stored()).toHaveLength(2);
      });

      test('are only the new ones of an overlapping request', async () => {
        await ingest(target, [mark(1), mark(2), mark(3)], 1, id);
        const response = await ingest(target, [mark(2), mark(3), mark(4), mark(5)], 1, id);
        expect(response).toMatchObject({ ackedSeq: 5, accepted: 2, duplicates: 2 });
        expect((await stored()).map((event) => event.value)).toEqual([1, 2, 3, 4, 5]);
      });

      test('are stored once when repeated within a request', async () => {
        const response = await ingest(target, [mark(1), mark(2), mark(2), mark(1), mark(3)], 1, id);
        expect(response).toMatchObject({ ackedSeq: 3, accepted: 3, duplicates: 2 });
        expect((await stored()).map((event) => event.value)).toEqual([1, 2, 3]);
      });

      test('keep their first content when a seq is repeated with another', async () => {
        await ingest(target, [mark(1)], 1, id);
        const other = record(1, own({ event: { type: 'CUSTOM', name: 'other' } }));
        expect(await ingest(target, [other], 1, id)).toMatchObject({ accepted: 0, duplicates: 1 });
        expect(await stored()).toEqual([{ type: 'CUSTOM', name: 'marker', value: 1 }]);
      });

      test('restart at seq 1 in a newer epoch', async () => {
        await ingest(target, [mark(1), mark(2)], 10, id);
        expect(await ingest(target, [mark(1)], 11, id)).toMatchObject({ ackedSeq: 1, accepted: 1, duplicates: 0 });
        expect(await stored()).toHaveLength(3);
      });

      test('may be sent with gzip', async () => {
        const body = gzipSync(JSON.stringify({ producer: producer(), records: [mark(1)] }));
        const response = await sendEvents(target, body, { 'content-encoding': 'gzip' });
        expect(response.status).toBe(200);
        expect(await response.json()).toMatchObject({ ackedSeq: 1, accepted: 1 });
      });

      test('keep any timestamp, and count a distant one as clock skew', async () => {
        await ingest(target, [mark(1, { occurredAt: 86_400_000 })], 1, id);
        expect(await rows('events')).toMatchObject([{ occurred_at: 86_400_000 }]);
        const [row] = (await rows('producers', 'id')) as { clock_skew_ms: number }[];
        expect(row?.clock_skew_ms).toBeLessThan(-60_000);
      });
    });

    describe('quarantined and acknowledged, with later records stored:', () => {
      const cases: [string, string, () => Record<string, unknown>][] = [
        ['a record of an unknown kind', 'unknown_kind', () => mark(2, { kind: 'telepathy' })],
        ['a record without a kind', 'unknown_kind', () => mark(2, { kind: undefined })],
        ['an event without a type', 'invalid_record', () => mark(2, { event: { name: 'no type' } })],
        ['an event that is no object', 'invalid_record', () => mark(2, { event: 'text' })],
        ['an event without a session', 'invalid_record', () => mark(2, { sessionId: undefined })],
        ['an id that no column can hold', 'invalid_record', () => mark(2, { sessionId: 'a\ud800b' })],
        ['a session that no address can name', 'invalid_record', () => mark(2, { sessionId: '..' })],
        ['a time that is no time', 'invalid_record', () => mark(2, { occurredAt: '2026-11-20' })],
        [
          'a log line of an unknown level',
          'invalid_record',
          () => mark(2, { kind: 'log', log: { level: 'x', message: '' } }),
        ],
        ['a loss of nothing', 'invalid_record', () => mark(2, { kind: 'lost', lost: { count: 0, reason: 'x' } })],
        [
          'a record over the limit',
          'record_too_large',
          () => mark(2, { event: { type: 'CUSTOM', name: 'big', value: 'x'.repeat(MAX_RECORD_BYTES) } }),
        ],
        [
          'a record over the limit in bytes though not in characters',
          'record_too_large',
          () => mark(2, { event: { type: 'CUSTOM', name: 'big', value: 'ü'.repeat(MAX_RECORD_BYTES / 2) } }),
        ],
      ];
      for (const [what, code, make] of cases) {
        test(what, async () => {
          const bad = make();
          const response = await ingest(target, [mark(1), bad, mark(3)], 1, id);
          expect(response).toMatchObject({ ackedSeq: 3, accepted: 2, duplicates: 0 });
          expect(response.rejected).toEqual([{ seq: 2, code, message: expect.stringMatching(/\w/) }]);
          const [kept, ...more] = (await rows('quarantine')) as { record: string; code: string }[];
          expect(more).toEqual([]);
          expect(kept?.code).toBe(code);
          expect(JSON.parse(kept?.record ?? '')).toEqual(parseWellFormed(JSON.stringify(bad)));
          const values = (await stored()).filter((event) => event.name === 'marker').map((event) => event.value);
          expect(values).toEqual([1, 3]);
          const again = await ingest(target, [mark(1), bad, mark(3)], 1, id);
          expect(again).toMatchObject({ duplicates: 3, rejected: [] });
        });
      }

      test('a record for another agent’s session is quarantined', async () => {
        await ingest(target, [mark(1)], 1, id);
        const stranger = await ingest(target, [mark(1, { agentId: 'stranger' })], 1, `${id}-stranger`);
        expect(stranger.rejected).toMatchObject([{ seq: 1, code: 'session_of_another_agent' }]);
        expect(stranger).toMatchObject({ ackedSeq: 1, accepted: 0 });
        const sessions = (await target.dump()).sessions as Record<string, unknown>[];
        expect(sessions.find((row) => row.id === `session-${id}`)).toMatchObject({ agent_id: `agent-${id}` });
        expect(await rows('quarantine')).toEqual([]);
      });

      test('an invalid record, marked at its place in the session', async () => {
        await ingest(target, [mark(1), mark(2, { event: {} }), mark(3)], 1, id);
        expect(await stored()).toEqual([
          { type: 'CUSTOM', name: 'marker', value: 1 },
          {
            type: 'CUSTOM',
            name: 'interlude:quarantined',
            value: { seq: 2, code: 'invalid_record', message: expect.any(String) },
          },
          { type: 'CUSTOM', name: 'marker', value: 3 },
        ]);
      });
    });

    describe('rejected without storing anything:', () => {
      /** Rows that name this test's outbox. The server meanwhile reports agents of earlier tests as silent. */
      const ownRows = async () =>
        Object.entries(await target.dump()).map(([table, all]) => [
          table,
          all.filter((row) => Object.values(row as object).some((value) => String(value).includes(id))),
        ]);
      const refuses = (
        what: string,
        expected: { status: number; code: string; [detail: string]: unknown },
        send: () => Promise<Response>,
      ) =>
        test(what, async () => {
          await ingest(target, [mark(1)], 5, id);
          const before = await ownRows();
          const response = await send();
          const { status, ...error } = expected;
          expect(response.status).toBe(status);
          expect(response.headers.get('content-type')).toMatch(/^application\/json/);
          expect(await errorOf(response)).toMatchObject({ message: expect.stringMatching(/^\S.*[.…"]$/), ...error });
          expect(await ownRows()).toEqual(before);
        });
      const send = (body: unknown, headers?: Record<string, string | null>) => () => sendEvents(target, body, headers);
      const malformed = { status: 400, code: 'malformed' };
      const records = (...list: unknown[]) => sendEvents(target, { producer: producer(5), records: list });

      refuses(
        'a body that is not JSON',
        { ...malformed, message: expect.stringMatching(/Unexpected token '}'/) },
        send('{"producer": }x'),
      );
      refuses(
        'a body that ends early',
        { ...malformed, message: expect.stringMatching(/12 characters/) },
        send('{"producer":'),
      );
      refuses('an empty body', malformed, send(''));
      refuses('a body that is not UTF-8', malformed, send(new Uint8Array([0x22, 0xff, 0x22])));
      refuses('a body that is a list', malformed, send([]));
      refuses(
        'no producer',
        { ...malformed, message: expect.stringMatching(/^producer: /) },
        send({ records: [marker(1)] }),
      );
      refuses('an epoch of text', { ...malformed, message: expect.stringMatching(/^producer\.epoch: /) }, () =>
        sendEvents(target, { producer: { id, epoch: '5' }, records: [mark(2)] }),
      );
      refuses('no records', { ...malformed, message: expect.stringMatching(/^records: /) }, () => records());
      refuses('a record without seq', { ...malformed, message: expect.stringMatching(/^records\[1\]\.seq: /) }, () =>
        records(mark(2), mark(3, { seq: undefined })),
      );
      refuses('a seq of 0', malformed, () => records(mark(0)));
      refuses('a seq that is not whole', malformed, () => records(mark(2.5)));
      refuses('a record that is no object', malformed, () => records(mark(2), 'text'));
      refuses(
        'a hole between two records',
        { ...malformed, message: expect.stringMatching(/records\[1\]\.seq is 4, but 3/) },
        () => records(mark(2), mark(4)),
      );
      refuses(
        'a body nested too deeply',
        { ...malformed, message: expect.stringMatching(/64 levels at byte 64/) },
        send('['.repeat(100_000)),
      );
      refuses('gzip that is none', malformed, send('plain text', { 'content-encoding': 'gzip' }));
      refuses('gzip that is cut off', malformed, () => {
        const whole = gzipSync(JSON.stringify({ producer: producer(5), records: [mark(2)] }));
        return sendEvents(target, whole.subarray(0, whole.length - 12), { 'content-encoding': 'gzip' });
      });
      refuses(
        'another encoding',
        { status: 415, code: 'unsupported_encoding' },
        send('x', { 'content-encoding': 'br' }),
      );
      refuses(
        'two encodings',
        { status: 415, code: 'unsupported_encoding' },
        send('x', { 'content-encoding': 'gzip, gzip' }),
      );
      refuses('a body over the limit', { status: 413, code: 'too_large', maxBytes: MAX_REQUEST_BYTES }, () =>
        records(mark(2, { filler: 'x'.repeat(MAX_REQUEST_BYTES) })),
      );
      refuses('a zip bomb', { status: 413, code: 'too_large' }, () =>
        sendEvents(target, gzipSync(new Uint8Array(16 * MAX_REQUEST_BYTES)), { 'content-encoding': 'gzip' }),
      );
      refuses('no token', { status: 401, code: 'unauthenticated' }, () =>
        sendEvents(target, { producer: producer(5), records: [mark(2)] }, { authorization: null }),
      );
      refuses('a wrong token', { status: 401, code: 'unauthenticated' }, () =>
        sendEvents(
          target,
          { producer: producer(5), records: [mark(2)] },
          { authorization: 'Bearer not-the-token-at-all' },
        ),
      );
      refuses('records beyond the next one', { status: 409, code: 'sequence_gap', expectedSeq: 2 }, () =>
        records(mark(3)),
      );
      refuses('a new epoch that does not begin at 1', { status: 409, code: 'sequence_gap', expectedSeq: 1 }, () =>
        sendEvents(target, { producer: producer(6), records: [mark(2)] }),
      );
      refuses('an older epoch, even what it sent before', { status: 403, code: 'stale_epoch', currentEpoch: 5 }, () =>
        sendEvents(target, { producer: producer(4), records: [mark(1)] }),
      );
    });

    test('answers a probe with the expected seq, storing nothing and counting no gap', async () => {
      await ingest(target, [record(1, own({ event: { type: 'CUSTOM', name: 'first' } }))], 1, id);
      const probe = { seq: Number.MAX_SAFE_INTEGER, kind: 'probe' };
      const response = await sendEvents(target, { producer: { id, epoch: 1 }, records: [probe] });
      expect(await errorOf(response)).toMatchObject({ code: 'sequence_gap', expectedSeq: 2 });
      await ingest(target, [record(2, own({ event: { type: 'CUSTOM', name: 'second' } }))], 1, id);
      const { producers } = await target.dump();
      expect(producers?.find((row) => (row as { id: string }).id === id)).toMatchObject({ last_seq: 2, gaps: 0 });
    });

    test('accepts a body of the maximum depth', async () => {
      // Body, records, record and event, then the levels of the value.
      const levels = MAX_JSON_DEPTH - 4;
      const value = JSON.parse('['.repeat(levels) + ']'.repeat(levels));
      const event = { type: 'CUSTOM', name: 'deep', value };
      await ingest(target, [record(1, own({ event }))], 1, id);
      expect(await stored()).toEqual([event]);
    });

    test('does not count brackets inside strings as depth', async () => {
      const event = { type: 'CUSTOM', name: 'text', value: `"\\"${'[{'.repeat(500)}\\` };
      await ingest(target, [record(1, own({ event }))], 1, id);
      expect(await stored()).toEqual([event]);
    });
  });
}
