import type { IngestAnswer, IngestRecord } from '@interlude/protocol/envelope';

/**
 * What a correct server keeps, in memory: per producer its epoch and the dense run of its records. It answers as
 * POST /events does, so that an outbox can be judged by what has arrived.
 */
export class Ledger {
  readonly #producers = new Map<string, { epoch: number; lastSeq: number }>();
  /** Everything that was accepted, in the order of its arrival. */
  readonly records: IngestRecord[] = [];
  duplicates = 0;
  /** The server's clock, in epoch milliseconds; null if it takes an outbox of any time. */
  now: number | null = null;

  take(body: { producer: { id: string; epoch: number }; records: IngestRecord[] }): { status: number; body: unknown } {
    const { producer, records } = body;
    const known = this.#producers.get(producer.id) ?? { epoch: 0, lastSeq: 0 };
    if (producer.epoch < known.epoch) {
      return refusal(403, 'stale_epoch', { currentEpoch: known.epoch });
    }
    if (this.now !== null && producer.epoch > Math.max(this.now, known.epoch)) {
      return refusal(409, 'epoch_ahead', { now: this.now, currentEpoch: known.epoch || null });
    }
    const state = producer.epoch > known.epoch ? { epoch: producer.epoch, lastSeq: 0 } : { ...known };
    if ((records[0]?.seq ?? 0) > state.lastSeq + 1) {
      return refusal(409, 'sequence_gap', { expectedSeq: state.lastSeq + 1 });
    }
    const answer: IngestAnswer = { ackedSeq: 0, accepted: 0, duplicates: 0, rejected: [], position: '0' };
    const fresh: IngestRecord[] = [];
    for (const record of records) {
      if (record.seq <= state.lastSeq) answer.duplicates += 1;
      else if (record.seq === state.lastSeq + 1) {
        state.lastSeq = record.seq;
        answer.accepted += 1;
        fresh.push(record);
      } else return refusal(400, 'malformed', {});
    }
    this.#producers.set(producer.id, state);
    this.records.push(...fresh);
    this.duplicates += answer.duplicates;
    return { status: 200, body: { ...answer, ackedSeq: state.lastSeq, position: String(this.records.length) } };
  }

  /** As after its database was deleted. What it has had stays in `records`, for the test to look at. */
  forget(): void {
    this.#producers.clear();
  }

  /** The texts of the log records, in the order of their arrival. */
  get messages(): string[] {
    return this.records.flatMap((record) => (record.kind === 'log' ? [record.log.message] : []));
  }

  /** How many records have been declared lost. */
  get lost(): number {
    return this.records.reduce((sum, record) => sum + (record.kind === 'lost' ? record.lost.count : 0), 0);
  }
}

export function refusal(status: number, code: string, details: object): { status: number; body: unknown } {
  return { status, body: { error: { code, message: `refused: ${code}`, ...details } } };
}
