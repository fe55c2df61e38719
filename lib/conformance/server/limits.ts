import {
  MAX_ID_LENGTH,
  MAX_JSON_DEPTH,
  MAX_RECORD_BYTES,
  MAX_RECORDS_PER_REQUEST,
  MAX_REQUEST_BYTES,
} from '@interlude/protocol/limits';
import { agree, type Check } from '../check';
import { custom, itemsOf, type PlayedAgent } from './played-agent';
import type { ServerStage } from './server-stage';

const WHY = '2, Limits';
const notice = (agent: PlayedAgent, text: string) => agent.event(custom('interlude:notice', { text }));

/** Sends a record that can't be taken between two that can. */
async function between(agent: PlayedAgent, bad: Record<string, unknown> & { kind: string }, code: string) {
  const records = agent.outbox.numbered([notice(agent, 'before'), bad, notice(agent, 'behind')]);
  const answer = await agent.outbox.post(records);
  const expected = { status: 200, ackedSeq: 3, accepted: 2, rejected: [{ seq: 2, code }] };
  const todo = `Put the record into quarantine as ${code}, acknowledge it, and take what follows.`;
  agree('the answer', { status: answer.status, ...answer.body }, expected, todo);
  const shown = (await agent.turns()).flatMap(itemsOf).filter((item) => /before|behind/.test(item));
  agree('what is shown', shown, ['notice before', 'notice behind'], todo);
}

export const LIMITS: readonly Check<ServerStage>[] = [
  {
    group: 'limits',
    name: 'a record over 1 MiB is put into quarantine and acknowledged, and what follows is taken',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('record');
      const big = agent.event(custom('big', { text: 'x'.repeat(MAX_RECORD_BYTES) }));
      await between(agent, big, 'record_too_large');
    },
  },
  {
    group: 'limits',
    name: 'a record of an unknown kind holds up nothing behind it',
    why: '3, Ingest',
    async run(stage) {
      const agent = stage.agent('kind');
      await between(agent, { ...agent.event(custom('x', {})), kind: 'telepathy' }, 'unknown_kind');
    },
  },
  {
    group: 'limits',
    name: 'an id of 256 is taken, and one of 257 is not',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('id');
      const id = (length: number) => `${agent.id}/`.padEnd(length, 'i');
      await between(agent, agent.event(custom('x', {}), id(MAX_ID_LENGTH + 1)), 'invalid_record');
      await agent.outbox.send(agent.event(custom('x', {}), id(MAX_ID_LENGTH)));
      const producer = { id: id(MAX_ID_LENGTH + 1), epoch: 1 };
      const answer = await stage.post('/events', { producer, records: [{ seq: 1, ...notice(agent, 'x') }] });
      const expected = { status: 400, error: { code: 'malformed' } };
      agree(
        'the answer to such a producer',
        { status: answer.status, ...answer.body },
        expected,
        'Refuse its request.',
      );
    },
  },
  {
    group: 'limits',
    name: 'a body nested 64 deep is taken, and one that is 65 deep is malformed',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('depth');
      // The body, its records, the record, its event and the value of that are five already.
      const nested = (depth: number) => {
        let value: unknown = {};
        for (let at = 5; at < depth; at += 1) value = { value };
        return agent.event({ type: 'CUSTOM', name: 'deep', value });
      };
      await agent.outbox.send(nested(MAX_JSON_DEPTH));
      const answer = await agent.outbox.post(agent.outbox.numbered([nested(MAX_JSON_DEPTH + 1)]));
      const expected = { status: 400, error: { code: 'malformed' } };
      agree('the answer', { status: answer.status, ...answer.body }, expected, 'Bound the depth before parsing.');
    },
  },
  {
    group: 'limits',
    name: '10,000 records are taken at once, and one more is malformed',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('records');
      const records = (count: number) => agent.outbox.numbered(Array.from({ length: count }, () => agent.log('x')));
      const [, ...more] = records(MAX_RECORDS_PER_REQUEST + 1);
      const refused = await agent.outbox.post([{ seq: 1, ...agent.log('x') }, ...more]);
      const malformed = { status: 400, error: { code: 'malformed' } };
      agree('the answer to 10,001', { status: refused.status, ...refused.body }, malformed, 'Refuse the request.');
      agent.outbox.next = 1;
      const taken = await agent.outbox.post(records(MAX_RECORDS_PER_REQUEST));
      const expected = { status: 200, accepted: MAX_RECORDS_PER_REQUEST };
      agree('the answer to 10,000', { status: taken.status, ...taken.body }, expected, 'Take them.');
    },
  },
  {
    group: 'limits',
    name: 'a body over 8 MiB is too large, and the answer says how much may come',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('body');
      const record = { seq: 1, ...agent.event(custom('x', {})), filler: '' };
      const producer = { id: agent.outbox.id, epoch: agent.outbox.epoch };
      const bare = JSON.stringify({ producer, records: [record] }).length;
      record.filler = 'x'.repeat(MAX_REQUEST_BYTES - bare + 1);
      const answer = await stage.post('/events', { producer, records: [record] });
      const expected = { status: 413, error: { code: 'too_large', maxBytes: MAX_REQUEST_BYTES } };
      agree('the answer', { status: answer.status, ...answer.body }, expected, 'Refuse it with 413 and maxBytes.');
    },
  },
];
