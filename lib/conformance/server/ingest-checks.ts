import { gzipSync } from 'node:zlib';
import { type Fields, fieldsOf } from '@interlude/protocol/fields';
import {
  MAX_ID_LENGTH,
  MAX_JSON_DEPTH,
  MAX_RECORD_BYTES,
  MAX_RECORDS_PER_REQUEST,
  MAX_REQUEST_BYTES,
} from '@interlude/protocol/limits';
import { assert, assertMatch } from '../check';
import {
  custom,
  type FakeAgent,
  type FakeRecord,
  itemsOf,
  type JsonResponse,
  notice,
  serverChecks,
} from './server-target';

/** Larger than any clock difference. */
const AHEAD_MS = 48 * 3_600_000;
const JSON_BODY = { 'content-type': 'application/json' };
const mark = (value: number) => custom('conformance:mark', { value });

/** @throws CheckFailed unless the session's stream has exactly these marks, in this order */
async function assertStored(agent: FakeAgent, expected: number[]): Promise<void> {
  const stream = await agent.stream('&after=0');
  await stream.frame('up-to-date', { todo: 'Send up-to-date once all rows are sent.' });
  stream.close();
  const marks = stream
    .named('session-event')
    .map(({ data }) => data.event as { name?: string; value?: { value?: number } })
    .flatMap(({ name, value }) => (name === 'conformance:mark' ? [value?.value] : []));
  assertMatch('the stored marks', marks, expected);
}

export const OUTBOX = serverChecks('outbox', '3, Ingest', {
  'a repeated request counts as duplicates and is stored once': {
    todo: 'Acknowledge known records, count them in duplicates, and store them once.',
    async run({ agent }) {
      const records = agent.outbox.numbered([agent.event(mark(1)), agent.event(mark(2))]);
      const first = await agent.outbox.post(records);
      assertMatch('the first answer', first.body, { ackedSeq: 2, accepted: 2, duplicates: 0 });
      const again = await agent.outbox.post(records);
      assertMatch('the response to the repeated request', again.body, { ackedSeq: 2, accepted: 0, duplicates: 2 });
      await assertStored(agent, [1, 2]);
    },
  },
  'only the new records of an overlapping request are stored': {
    todo: 'Accept each record by its seq, whichever request carries it.',
    async run({ agent }) {
      const records = agent.outbox.numbered([1, 2, 3, 4].map((value) => agent.event(mark(value))));
      await agent.outbox.post(records.slice(0, 3));
      const { body } = await agent.outbox.post(records.slice(1));
      assertMatch('the response', body, { ackedSeq: 4, accepted: 1, duplicates: 2 });
      await assertStored(agent, [1, 2, 3, 4]);
    },
  },
  'a number keeps its first record': {
    todo: 'Keep the record that was acknowledged.',
    async run({ agent }) {
      await agent.outbox.post([{ seq: 1, ...agent.event(mark(1)) }]);
      const { body } = await agent.outbox.post([{ seq: 1, ...agent.event(mark(2)) }]);
      assertMatch('the response', body, { accepted: 0, duplicates: 1 });
      await assertStored(agent, [1]);
    },
  },
  'records beyond the next number are a gap that names the expected one and stores nothing': {
    todo: 'Respond 409 sequence_gap with expectedSeq.',
    async run({ agent }) {
      await agent.emit(mark(1));
      const { seen } = await agent.outbox.post([{ seq: 3, ...agent.event(mark(3)) }]);
      assertMatch('the response', seen, { status: 409, error: { code: 'sequence_gap', expectedSeq: 2 } });
      await assertStored(agent, [1]);
    },
  },
  'a probe returns the expected number and stores nothing': {
    todo: 'Refuse {"kind":"probe"} with the seq 2^53 - 1 as a gap.',
    async run({ agent }) {
      await agent.emit(mark(1), mark(2));
      const { seen } = await agent.outbox.post([{ seq: Number.MAX_SAFE_INTEGER, kind: 'probe' }]);
      assertMatch('the response', seen, { status: 409, error: { code: 'sequence_gap', expectedSeq: 3 } });
      await agent.emit(mark(3));
      await assertStored(agent, [1, 2, 3]);
    },
  },
  'a newer epoch starts at 1 and fences the older one': {
    todo: 'Start each greater epoch at 1, and refuse smaller ones with 403 stale_epoch and currentEpoch.',
    async run({ agent }) {
      const { outbox } = agent;
      await agent.emit(mark(1));
      const newer = await outbox.post([{ seq: 1, ...agent.event(mark(2)) }], outbox.epoch + 1);
      assertMatch('the response to the newer epoch', newer.body, { ackedSeq: 1, accepted: 1, duplicates: 0 });
      const older = await outbox.post([{ seq: 2, ...agent.event(mark(3)) }]);
      const refused = { status: 403, error: { code: 'stale_epoch', currentEpoch: outbox.epoch + 1 } };
      assertMatch('the response to the older epoch', older.seen, refused);
      await assertStored(agent, [1, 2]);
    },
  },
  'an epoch ahead of the server’s clock is refused with the current time': {
    todo: 'Refuse an epoch far ahead of the server’s clock with 409 epoch_ahead, now and currentEpoch; accept others.',
    async run({ agent }) {
      const { seen, body } = await agent.outbox.post([{ seq: 1, ...agent.event(mark(1)) }], Date.now() + AHEAD_MS);
      assertMatch('the response', seen, { status: 409, error: { code: 'epoch_ahead', currentEpoch: null } });
      const now = Number(fieldsOf(body.error).now);
      const retried = await agent.outbox.post([{ seq: 1, ...agent.event(mark(2)) }], now);
      assertMatch('the response to an epoch at that time', retried.body, { ackedSeq: 1, accepted: 1 });
      await assertStored(agent, [2]);
    },
  },
  'gzip requests with one or several members are accepted': {
    todo: 'Decompress every member of a gzip body.',
    async run({ agent, server }) {
      const { id, epoch } = agent.outbox;
      const headers = { ...server.authorized, ...JSON_BODY, 'content-encoding': 'gzip' };
      for (const [index, members] of [1, 3].entries()) {
        const record = { seq: index + 1, ...agent.event(mark(index + 1)) };
        const json = JSON.stringify({ producer: { id, epoch }, records: [record] });
        const length = Math.ceil(json.length / members);
        const parts = Array.from({ length: members }, (_, part) =>
          gzipSync(json.slice(part * length, (part + 1) * length)),
        );
        const body = new Uint8Array(Buffer.concat(parts));
        const { seen } = await server.send('/events', { method: 'POST', headers, body });
        assertMatch(`the response to ${members} member(s)`, seen, { status: 200, ackedSeq: index + 1, accepted: 1 });
      }
    },
  },
  'two outboxes of one agent have separate numbers': {
    why: '1, Terms',
    todo: 'Track seq per producer id.',
    async run({ agent, server }) {
      await agent.emit(mark(1), mark(2));
      const producer = { id: `${agent.outbox.id}/other`, epoch: agent.outbox.epoch };
      const { body } = await server.post('/events', { producer, records: [{ seq: 1, ...agent.event(mark(3)) }] });
      assertMatch('the response to the other producer', body, { ackedSeq: 1, accepted: 1, duplicates: 0 });
      await agent.emit(mark(4));
      await assertStored(agent, [1, 2, 3, 4]);
    },
  },
  'a loss appears in the transcript where it happened': {
    todo: 'Show interlude:lost at the position of the lost record.',
    async run({ agent }) {
      const { sessionId, id: agentId } = agent;
      const lost = { kind: 'lost', agentId, sessionId, occurredAt: Date.now(), lost: { count: 12, reason: 'full' } };
      await agent.outbox.send(agent.event(notice('before')), lost, agent.event(notice('behind')));
      const [turn] = await agent.turns();
      const codes = ((turn?.items as { code?: string }[] | undefined) ?? []).map(({ code }) => code ?? null);
      assertMatch('the codes of the notices', codes, [null, 'lost', null]);
    },
  },
});

/** @throws CheckFailed unless the response is this error, as JSON, with a message */
function assertError(subject: string, { seen, body, headers }: JsonResponse, expected: Fields): void {
  assertMatch(subject, seen, expected, 'Use the status and the code of the error table.');
  const { message } = fieldsOf(body.error);
  const hasMessage = typeof message === 'string' && message.length > 8;
  assert(hasMessage, `${subject} to have a message`, seen, 'Say in the message what to do next.');
  const type = headers.get('content-type') ?? '';
  assert(/^application\/json/.test(type), `${subject} as JSON`, type, 'Give every error a JSON body.');
}

export const ANSWERS = serverChecks('answers', '2, Errors', {
  'an invalid body is malformed, and the message names the field': {
    todo: 'Name the field in the message.',
    async run({ agent, server }) {
      const producer = { id: agent.outbox.id, epoch: agent.outbox.epoch };
      const record = { seq: 1, ...agent.event(custom('x')) };
      const malformed = { status: 400, error: { code: 'malformed' } };
      const bodies: [subject: string, body: unknown, field: RegExp][] = [
        ['a body without producer', { records: [record] }, /producer/],
        ['a textual epoch', { producer: { ...producer, epoch: '5' }, records: [record] }, /epoch/],
        ['an empty list of records', { producer, records: [] }, /records/],
        ['a record without seq', { producer, records: [{ ...record, seq: undefined }] }, /seq/],
        ['a gap between two records', { producer, records: [record, { ...record, seq: 3 }] }, /seq/],
      ];
      for (const [subject, body, field] of bodies) {
        const response = await server.post('/events', body);
        assertError(subject, response, malformed);
        assert(field.test(response.text), `the response to ${subject} to name the field`, response.body);
      }
      const headers = { ...server.authorized, ...JSON_BODY };
      const cut = await server.send('/events', { method: 'POST', headers, body: '{"producer":' });
      assertError('incomplete JSON', cut, malformed);
    },
  },
  'an encoding other than gzip is refused as unsupported': {
    todo: 'Refuse it as unsupported_encoding.',
    async run({ server }) {
      const headers = { ...server.authorized, ...JSON_BODY, 'content-encoding': 'br' };
      const response = await server.send('/events', { method: 'POST', headers, body: '{}' });
      assertError('content-encoding: br', response, { status: 415, error: { code: 'unsupported_encoding' } });
    },
  },
  'unknown resources are not found, and unsupported methods are not allowed': {
    todo: 'List the methods of the route in Allow.',
    async run({ server }) {
      const notFound = { status: 404, error: { code: 'not_found' } };
      assertError('an unknown session', await server.get(`/sessions/${server.prefix}-nobody`), notFound);
      assertError('an unknown route', await server.get('/no/such/route'), notFound);
      const response = await server.post('/events', {}, 'PUT');
      assertError('PUT /events', response, { status: 405, error: { code: 'method_not_allowed' } });
      const allowed = response.headers.get('allow') ?? '';
      assert(/\bPOST\b/.test(allowed), 'Allow to list POST', allowed);
    },
  },
  'the response to an invalid parameter names it': {
    todo: 'Name the parameter in the response.',
    async run({ server }) {
      const response = await server.get('/sessions?limit=none');
      assertError('limit=none', response, { status: 400, error: { code: 'invalid_argument' } });
      assert(response.text.includes('limit'), 'the response to name limit', response.body);
    },
  },
  'a refused request stores nothing': {
    todo: 'Store all records of a request or none.',
    async run({ agent }) {
      const record = (seq: number) => ({ seq, ...agent.event(notice(`${seq}`)) });
      await agent.outbox.post([record(1)]);
      await agent.outbox.post([record(2), record(4)]);
      await agent.outbox.post([record(3)]);
      assertMatch('the transcript', (await agent.turns()).flatMap(itemsOf), ['notice 1']);
    },
  },
  'acknowledged records are readable when the response arrives': {
    why: '3, Ingest',
    todo: 'Commit rows and read models in one transaction before you respond.',
    async run({ agent, server }) {
      for (let index = 1; index <= 10; index += 1) {
        const { position } = await agent.emit(notice(`read-back ${index}`));
        const transcript = await server.read(`${agent.path}/transcript`);
        const isCurrent = Number(transcript.position) >= Number(position);
        assert(isCurrent, `the transcript at ${position} or later`, transcript.position);
        const items = itemsOf((transcript.turns as Fields[])[0]);
        assert(items.length === index, `${index} items`, items);
      }
    },
  },
  'responses other than streams can’t be cached': {
    why: '2, Common rules',
    todo: 'Send cache-control: no-store with every response.',
    async run({ agent, server }) {
      await agent.emit(custom('x'));
      const paths = ['/sessions', agent.path, `${agent.path}/transcript`, '/agents', '/inbox', '/no/such/route'];
      for (const path of paths) {
        const seen = (await server.get(path)).headers.get('cache-control') ?? '';
        assert(/no-store/.test(seen), `no-store on ${path}`, seen);
      }
    },
  },
});

/** Sends an invalid record between two valid ones. @throws CheckFailed unless it is quarantined with this code */
async function assertQuarantined(agent: FakeAgent, invalid: FakeRecord, code: string): Promise<void> {
  const records = [agent.event(notice('before')), invalid, agent.event(notice('behind'))];
  const { seen } = await agent.outbox.post(agent.outbox.numbered(records));
  const expected = { status: 200, ackedSeq: 3, accepted: 2, rejected: [{ seq: 2, code }] };
  const todo = `Quarantine the record as ${code}, acknowledge it, and accept the records after it.`;
  assertMatch('the response', seen, expected, todo);
  const notices = (await agent.turns()).flatMap(itemsOf).filter((item) => /before|behind/.test(item));
  assertMatch('the notices', notices, ['notice before', 'notice behind'], todo);
}

export const LIMITS = serverChecks('limits', '2, Limits', {
  'a record over 1 MiB is quarantined and acknowledged, and later records are accepted': {
    todo: 'Quarantine it as record_too_large.',
    async run({ agent }) {
      const large = agent.event(custom('big', { text: 'x'.repeat(MAX_RECORD_BYTES) }));
      await assertQuarantined(agent, large, 'record_too_large');
    },
  },
  'a record of an unknown kind does not block later records': {
    why: '3, Ingest',
    todo: 'Quarantine it as unknown_kind.',
    async run({ agent }) {
      await assertQuarantined(agent, { ...agent.event(custom('x')), kind: 'telepathy' }, 'unknown_kind');
    },
  },
  'an id of 256 characters is accepted, and one of 257 is refused': {
    todo: 'Refuse a request whose producer id is too long.',
    async run({ agent, server }) {
      const id = (length: number) => `${agent.id}/`.padEnd(length, 'i');
      await assertQuarantined(agent, agent.event(custom('x'), id(MAX_ID_LENGTH + 1)), 'invalid_record');
      await agent.outbox.send(agent.event(custom('x'), id(MAX_ID_LENGTH)));
      const producer = { id: id(MAX_ID_LENGTH + 1), epoch: 1 };
      const { seen } = await server.post('/events', { producer, records: [{ seq: 1, ...agent.event(notice('x')) }] });
      assertMatch('the response to such a producer', seen, { status: 400, error: { code: 'malformed' } });
    },
  },
  'a body 64 levels deep is accepted, and one of 65 levels is malformed': {
    todo: 'Check the depth before parsing.',
    async run({ agent }) {
      // The body, its records, the record, the event and its value are the first five levels.
      const nested = (depth: number) => {
        let value: unknown = {};
        for (let index = 5; index < depth; index += 1) value = { value };
        return agent.event({ type: 'CUSTOM', name: 'deep', value });
      };
      await agent.outbox.send(nested(MAX_JSON_DEPTH));
      const { seen } = await agent.outbox.post(agent.outbox.numbered([nested(MAX_JSON_DEPTH + 1)]));
      assertMatch('the response', seen, { status: 400, error: { code: 'malformed' } });
    },
  },
  '10,000 records in a request are accepted, and one more is malformed': {
    todo: 'Accept 10,000 records in a request, and refuse more.',
    async run({ agent }) {
      const records = agent.outbox.numbered(Array.from({ length: MAX_RECORDS_PER_REQUEST + 1 }, () => agent.log('x')));
      const { seen: refused } = await agent.outbox.post(records);
      assertMatch('the response to 10,001', refused, { status: 400, error: { code: 'malformed' } });
      const { seen } = await agent.outbox.post(records.slice(0, -1));
      assertMatch('the response to 10,000', seen, { status: 200, accepted: MAX_RECORDS_PER_REQUEST });
    },
  },
  'a body over 8 MiB is too large, and the response names the limit': {
    todo: 'Refuse it with 413 and maxBytes.',
    async run({ agent, server }) {
      const record = { seq: 1, ...agent.event(custom('x')), filler: '' };
      const body = { producer: { id: agent.outbox.id, epoch: agent.outbox.epoch }, records: [record] };
      record.filler = 'x'.repeat(MAX_REQUEST_BYTES - JSON.stringify(body).length + 1);
      const { seen } = await server.post('/events', body);
      assertMatch('the response', seen, { status: 413, error: { code: 'too_large', maxBytes: MAX_REQUEST_BYTES } });
    },
  },
});
