import type { IngestResponse } from '@interlude/protocol/envelope';
import fc from 'fast-check';
import { afterEach, expect, it } from 'vitest';
import { errorOf, type InProcessTarget, inProcessTarget, marker, sendEvents } from '../support/ingest-target';

/**
 * Invariants 1 and 2: with retries, reordering, splits, duplicates, disconnects and restarts, the log contains each
 * acknowledged record once, in `seq` order.
 */
let target: InProcessTarget;
afterEach(() => target.close());

const PRODUCERS = 3;

/** An outbox's knowledge, based only on the server's responses. */
interface Outbox {
  id: string;
  epoch: number;
  /** Last seq known to be stored. */
  acked: number;
  /** Last seq created. */
  made: number;
  finished: { epoch: number; lastSeq: number }[];
}

type Step =
  | { kind: 'send'; producer: number; back: number; size: number; loses: boolean }
  | { kind: 'together'; sends: { producer: number; back: number; size: number }[] }
  | { kind: 'ahead'; producer: number; by: number }
  | { kind: 'cut'; producer: number; size: number; at: number }
  | { kind: 'stale'; producer: number }
  | { kind: 'new-outbox'; producer: number }
  | { kind: 'restart' };

const producer = fc.nat(PRODUCERS - 1);
const send = fc.record({ producer, back: fc.nat(6), size: fc.integer({ min: 1, max: 12 }) });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: send.chain((what) => fc.boolean().map((loses): Step => ({ kind: 'send', ...what, loses }))) },
  {
    weight: 3,
    arbitrary: fc.array(send, { minLength: 2, maxLength: 6 }).map((sends): Step => ({ kind: 'together', sends })),
  },
  {
    weight: 1,
    arbitrary: fc
      .record({ producer, by: fc.integer({ min: 1, max: 5 }) })
      .map((what): Step => ({ kind: 'ahead', ...what })),
  },
  {
    weight: 1,
    arbitrary: fc
      .record({ producer, size: fc.integer({ min: 1, max: 5 }), at: fc.double({ min: 0, max: 0.99, noNaN: true }) })
      .map((what): Step => ({ kind: 'cut', ...what })),
  },
  { weight: 1, arbitrary: producer.map((index): Step => ({ kind: 'stale', producer: index })) },
  { weight: 1, arbitrary: producer.map((index): Step => ({ kind: 'new-outbox', producer: index })) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: 'restart' }) },
);

it('ingest stores each record once and in order through any failures between outbox and server', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
      target = await inProcessTarget();
      const outboxes = Array.from(
        { length: PRODUCERS },
        (_, index): Outbox => ({ id: `p${index}`, epoch: 1, acked: 0, made: 0, finished: [] }),
      );
      for (const what of steps) await run(what, outboxes);
      await expectLog(outboxes);
      await target.close();
    }),
    { numRuns: 60 },
  );
});

async function run(step: Step, outboxes: Outbox[]): Promise<void> {
  switch (step.kind) {
    case 'send': {
      const outbox = outboxOf(outboxes, step.producer);
      const answer = await accepted(await post(outbox, range(outbox, step)));
      // a lost response: the server has the records, the outbox doesn't know
      if (!step.loses) outbox.acked = answer.ackedSeq;
      return;
    }
    case 'together': {
      // concurrent, so they may be handled in any order and share a commit
      const ranges = step.sends.map(
        (one) => [outboxOf(outboxes, one.producer), range(outboxOf(outboxes, one.producer), one)] as const,
      );
      for (const [index, response] of (
        await Promise.all(ranges.map(([outbox, seqs]) => post(outbox, seqs)))
      ).entries()) {
        const outbox = ranges[index]?.[0] as Outbox;
        if (response.status === 409) expect((await errorOf(response)).code).toBe('sequence_gap');
        else outbox.acked = Math.max(outbox.acked, (await accepted(response)).ackedSeq);
      }
      return;
    }
    case 'ahead': {
      const outbox = outboxOf(outboxes, step.producer);
      // probe the server's state with a retry, then send a gap
      if (outbox.acked > 0) outbox.acked = (await accepted(await post(outbox, [1, 1]))).ackedSeq;
      else outbox.acked = (await accepted(await post(outbox, range(outbox, { back: 0, size: 1 })))).ackedSeq;
      const from = outbox.acked + 1 + step.by;
      const response = await post(outbox, [from, from + 2]);
      expect(response.status).toBe(409);
      expect((await errorOf(response)).expectedSeq).toBe(outbox.acked + 1);
      return;
    }
    case 'cut': {
      const outbox = outboxOf(outboxes, step.producer);
      const text = bodyOf(outbox, range(outbox, { back: 0, size: step.size }));
      const before = await target.dump();
      const response = await sendEvents(target, brokenStream(text.slice(0, Math.floor(text.length * step.at))));
      expect((await errorOf(response)).code).toBe('malformed');
      expect(await target.dump()).toEqual(before);
      return;
    }
    case 'stale': {
      const outbox = outboxOf(outboxes, step.producer);
      const old = outbox.finished.at(-1);
      if (old === undefined || outbox.acked === 0) return;
      const response = await post({ ...outbox, epoch: old.epoch }, [1, old.lastSeq + 1]);
      expect(response.status).toBe(403);
      expect((await errorOf(response)).currentEpoch).toBe(outbox.epoch);
      return;
    }
    case 'new-outbox': {
      const outbox = outboxOf(outboxes, step.producer);
      await drain(outbox);
      outbox.finished.push({ epoch: outbox.epoch, lastSeq: outbox.made });
      Object.assign(outbox, { epoch: outbox.epoch + 7, acked: 0, made: 0 });
      return;
    }
    case 'restart':
      await target.restart();
  }
}

/** A batch that overlaps earlier records. */
function range(outbox: Outbox, { back, size }: { back: number; size: number }): [number, number] {
  const from = Math.max(1, outbox.acked + 1 - back);
  const to = from + size - 1;
  outbox.made = Math.max(outbox.made, to);
  return [from, to];
}

async function drain(outbox: Outbox): Promise<void> {
  if (outbox.made > 0) outbox.acked = (await accepted(await post(outbox, [1, outbox.made]))).ackedSeq;
}

/** Two of three producers share an agent, and an agent's records alternate between two sessions. */
function bodyOf({ id, epoch }: Outbox, [from, to]: [number, number]): string {
  const agentId = id === 'p2' ? 'a2' : 'a1';
  const records = Array.from({ length: to - from + 1 }, (_, index) => {
    const seq = from + index;
    return marker(seq, { agentId, sessionId: `${agentId}-s${seq % 2}` });
  });
  return JSON.stringify({ producer: { id, epoch }, records });
}

const post = (outbox: Outbox, seqs: [number, number]) => sendEvents(target, bodyOf(outbox, seqs));

async function accepted(response: Response): Promise<IngestResponse> {
  const answer = await response.json();
  expect(answer).toMatchObject({ rejected: [] });
  return answer;
}

function brokenStream(text: string): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull(controller) {
      if (text === '') return controller.error(new Error('connection reset'));
      controller.enqueue(new TextEncoder().encode(text));
      text = '';
    },
  });
}

async function expectLog(outboxes: Outbox[]): Promise<void> {
  for (const outbox of outboxes) await drain(outbox);
  const { rows } = await target.database.reader.execute('SELECT * FROM events ORDER BY position');
  for (const { id, epoch, made, finished } of outboxes) {
    for (const run of [...finished, { epoch, lastSeq: made }]) {
      const seqs = rows.filter((row) => row.producer_id === id && row.epoch === run.epoch).map((row) => row.seq);
      expect(seqs).toEqual(Array.from({ length: run.lastSeq }, (_, index) => index + 1));
    }
  }
  for (const row of rows) expect(JSON.parse(String(row.payload)).value).toBe(row.seq);
  const { rows: counted } = await target.database.reader.execute('SELECT sum(accepted) AS accepted FROM producers');
  expect(Number(counted[0]?.accepted ?? 0)).toBe(rows.length);
  const { rows: counter } = await target.database.reader.execute('SELECT position FROM counter');
  expect(Number(counter[0]?.position ?? 0)).toBeGreaterThanOrEqual(Number(rows.at(-1)?.position ?? 0));
}

function outboxOf(outboxes: Outbox[], index: number): Outbox {
  return outboxes[index] as Outbox;
}
