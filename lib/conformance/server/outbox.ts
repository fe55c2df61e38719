import { gzipSync } from 'node:zlib';
import { fieldsOf } from '@interlude/protocol/fields';
import { agree, type Check } from '../check';
import { custom } from './played-agent';
import type { ServerStage } from './server-stage';

const WHY = '3, Ingest';
/** More than clocks differ. */
const AHEAD_MS = 48 * 3_600_000;
const mark = (value: number) => custom('conformance:mark', { value });

/** What the stream of a session tells of its marks, in order. */
async function marks(stage: ServerStage, sessionId: string): Promise<unknown[]> {
  const reader = await stage.stream(`/stream?topic=${encodeURIComponent(`session:${sessionId}`)}&after=0`);
  await reader.frame(
    'the stream to catch up',
    ({ event }) => event === 'up-to-date',
    'Send up-to-date once all is sent.',
  );
  reader.close();
  return reader
    .named('session-event')
    .map(({ data }) => data.event as { name?: string; value?: { value?: number } })
    .flatMap(({ name, value }) => (name === 'conformance:mark' ? [value?.value] : []));
}

export const OUTBOX: readonly Check<ServerStage>[] = [
  {
    group: 'outbox',
    name: 'a request that is sent again is counted as duplicates, and stores nothing twice',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('again');
      const records = agent.outbox.numbered([agent.event(mark(1)), agent.event(mark(2))]);
      const todo = 'Acknowledge what is known, count it in duplicates, and store it once.';
      const first = await agent.outbox.post(records);
      agree('the first answer', first.body, { ackedSeq: 2, accepted: 2, duplicates: 0 }, todo);
      const again = await agent.outbox.post(records);
      agree('the answer to the same again', again.body, { ackedSeq: 2, accepted: 0, duplicates: 2 }, todo);
      agree('what is stored', await marks(stage, agent.sessionId), [1, 2], todo);
    },
  },
  {
    group: 'outbox',
    name: 'of a request that overlaps an earlier one only what is new is taken',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('overlap');
      const records = agent.outbox.numbered([1, 2, 3, 4].map((value) => agent.event(mark(value))));
      await agent.outbox.post(records.slice(0, 3));
      const todo = 'Take each record by its seq, whatever request it comes in.';
      const answer = await agent.outbox.post(records.slice(1));
      agree('the answer', answer.body, { ackedSeq: 4, accepted: 1, duplicates: 2 }, todo);
      agree('what is stored', await marks(stage, agent.sessionId), [1, 2, 3, 4], todo);
    },
  },
  {
    group: 'outbox',
    name: 'the first content of a number stays, whatever comes under it later',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('content');
      const todo = 'Keep the record that was acknowledged.';
      await agent.outbox.post([{ seq: 1, ...agent.event(mark(1)) }]);
      const answer = await agent.outbox.post([{ seq: 1, ...agent.event(mark(2)) }]);
      agree('the answer', answer.body, { accepted: 0, duplicates: 1 }, todo);
      agree('what is stored', await marks(stage, agent.sessionId), [1], todo);
    },
  },
  {
    group: 'outbox',
    name: 'records beyond the next one are a gap, which says what is expected and stores nothing',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('gap');
      const todo = 'Answer 409 sequence_gap with expectedSeq.';
      await agent.tell(mark(1));
      const answer = await agent.outbox.post([{ seq: 3, ...agent.event(mark(3)) }]);
      const seen = { status: answer.status, ...answer.body };
      agree('the answer', seen, { status: 409, error: { code: 'sequence_gap', expectedSeq: 2 } }, todo);
      agree('what is stored', await marks(stage, agent.sessionId), [1], todo);
    },
  },
  {
    group: 'outbox',
    name: 'a probe says what is expected next, and stores nothing',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('probe');
      const todo = 'Refuse {"kind":"probe"} with the seq 2^53 - 1 as a gap.';
      await agent.tell(mark(1), mark(2));
      const answer = await agent.outbox.post([{ seq: Number.MAX_SAFE_INTEGER, kind: 'probe' }]);
      const seen = { status: answer.status, ...answer.body };
      agree('the answer', seen, { status: 409, error: { code: 'sequence_gap', expectedSeq: 3 } }, todo);
      await agent.tell(mark(3));
      agree('what is stored', await marks(stage, agent.sessionId), [1, 2, 3], todo);
    },
  },
  {
    group: 'outbox',
    name: 'a newer epoch begins at 1, and fences the older one',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('epoch');
      const { outbox } = agent;
      await agent.tell(mark(1));
      const newer = await outbox.post([{ seq: 1, ...agent.event(mark(2)) }], outbox.epoch + 1);
      const begins = 'Begin at 1 with every greater epoch.';
      agree('the answer to it', newer.body, { ackedSeq: 1, accepted: 1, duplicates: 0 }, begins);
      const older = await outbox.post([{ seq: 2, ...agent.event(mark(3)) }]);
      const refused = { status: 403, error: { code: 'stale_epoch', currentEpoch: outbox.epoch + 1 } };
      const todo = 'Refuse an epoch smaller than the newest with 403 stale_epoch and currentEpoch.';
      agree('the answer to the older', { status: older.status, ...older.body }, refused, todo);
      agree('what is stored', await marks(stage, agent.sessionId), [1, 2], todo);
    },
  },
  {
    group: 'outbox',
    name: 'an epoch that is ahead of the server’s clock is refused, with the time',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('ahead');
      const todo = 'Refuse a new epoch far ahead of your clock with 409 epoch_ahead, now and currentEpoch.';
      const answer = await agent.outbox.post([{ seq: 1, ...agent.event(mark(1)) }], Date.now() + AHEAD_MS);
      const refused = { status: 409, error: { code: 'epoch_ahead', currentEpoch: null } };
      agree('the answer', { status: answer.status, ...answer.body }, refused, todo);
      const now = Number(fieldsOf(answer.body.error).now);
      const first = await agent.outbox.post([{ seq: 1, ...agent.event(mark(2)) }], now);
      agree('the answer at that time', first.body, { ackedSeq: 1, accepted: 1 }, 'Take an epoch of your own time.');
      agree('what is stored', await marks(stage, agent.sessionId), [2], todo);
    },
  },
  {
    group: 'outbox',
    name: 'a request in gzip is understood, in one member and in several',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('gzip');
      const { id, epoch } = agent.outbox;
      const headers = { ...stage.authorized, 'content-type': 'application/json', 'content-encoding': 'gzip' };
      for (const [at, members] of [1, 3].entries()) {
        const record = { seq: at + 1, ...agent.event(mark(at + 1)) };
        const text = JSON.stringify({ producer: { id, epoch }, records: [record] });
        const length = Math.ceil(text.length / members);
        const parts = Array.from({ length: members }, (_, part) =>
          gzipSync(text.slice(part * length, (part + 1) * length)),
        );
        const body = new Uint8Array(Buffer.concat(parts));
        const { status, body: said } = await stage.send('/events', { method: 'POST', headers, body });
        const todo = 'Unpack every member of a gzip body.';
        agree(
          `the answer to ${members} member(s)`,
          { status, ...said },
          { status: 200, ackedSeq: at + 1, accepted: 1 },
          todo,
        );
      }
    },
  },
  {
    group: 'outbox',
    name: 'two outboxes of one agent are numbered apart',
    why: '1, Terms',
    async run(stage) {
      const agent = stage.agent('two');
      const todo = 'Keep the numbers of each producer by its own id.';
      await agent.tell(mark(1), mark(2));
      const producer = { id: `${agent.outbox.id}/other`, epoch: agent.outbox.epoch };
      const other = await stage.post('/events', { producer, records: [{ seq: 1, ...agent.event(mark(3)) }] });
      agree('the answer to the other', other.body, { ackedSeq: 1, accepted: 1, duplicates: 0 }, todo);
      await agent.tell(mark(4));
      agree('what is stored', await marks(stage, agent.sessionId), [1, 2, 3, 4], todo);
    },
  },
  {
    group: 'outbox',
    name: 'a loss is told in the transcript, at the place where it was lost',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('loss');
      const notice = (text: string) => agent.event(custom('interlude:notice', { text }));
      const { sessionId, id: agentId } = agent;
      const lost = { kind: 'lost', agentId, sessionId, occurredAt: Date.now(), lost: { count: 12, reason: 'full' } };
      await agent.outbox.send(notice('before'), lost, notice('behind'));
      const [turn] = await agent.turns();
      const codes = ((turn?.items as { code?: string }[] | undefined) ?? []).map(({ code }) => code ?? null);
      agree('the notices', codes, [null, 'lost', null], 'Show interlude:lost where the lost record stands.');
    },
  },
];
