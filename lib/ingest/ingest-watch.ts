import type { Telemetry } from '@/lib/telemetry/telemetry';
import type { Batch, CommitOutcome } from './commit-batch';

/** Measures what becomes of a batch, for those who are told. */
export class IngestWatch {
  readonly #telemetry: Telemetry;
  readonly #batch: Batch;
  readonly #traceparent: string | null;
  readonly #bytes: number;
  readonly #startedAt = performance.now();
  #waitedMs: number | null = null;

  constructor(telemetry: Telemetry, batch: Batch, { headers }: Request, body: Uint8Array) {
    this.#telemetry = telemetry;
    this.#batch = batch;
    this.#traceparent = headers.get('traceparent');
    this.#bytes = body.byteLength;
  }

  /** Its turn to write has come. It may come again. */
  begin(): void {
    this.#waitedMs ??= performance.now() - this.#startedAt;
  }

  /** @param outcome null if it failed */
  end(outcome: CommitOutcome | null): void {
    const { source, records, receivedAt } = this.#batch;
    const answer = outcome?.kind === 'answered' ? outcome.answer : null;
    const newest = records.at(-1)?.judgement;
    const occurredAt = newest?.taken === true && 'occurredAt' in newest.record ? newest.record.occurredAt : null;
    const tookMs = performance.now() - this.#startedAt;
    this.#telemetry.ingested?.({
      producerId: source.id,
      records: records.length,
      outcome:
        answer === null
          ? null
          : { accepted: answer.accepted, duplicates: answer.duplicates, rejected: answer.rejected.length },
      kind: outcome?.kind ?? 'failed',
      bytes: this.#bytes,
      receivedAt,
      waitedMs: this.#waitedMs ?? tookMs,
      tookMs,
      ageMs: occurredAt === null ? null : Math.max(receivedAt - occurredAt, 0),
      traceparent: this.#traceparent,
    });
  }
}
