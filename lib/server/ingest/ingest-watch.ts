import type { IngestAnswer } from '@interlude/protocol/envelope';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { fieldsOf, textOf } from '@interlude/protocol/fields';
import type { Ended, Telemetry } from '@/lib/server/telemetry/telemetry';
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
    if (answer !== null && this.#telemetry.ended !== undefined) {
      const ended = endsIn(records, answer);
      if (ended.length > 0) this.#telemetry.ended(ended);
    }
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

/** What is told to have ended by what was accepted. A batch that is sent again tells nothing. */
function endsIn(records: Batch['records'], { ackedSeq, accepted, rejected }: IngestAnswer): Ended[] {
  const told = ackedSeq - accepted - rejected.length;
  const refused = new Set(rejected.map(({ seq }) => seq));
  return records.flatMap(({ raw, judgement }): Ended[] => {
    if (raw.seq <= told || refused.has(raw.seq) || !judgement.taken) return [];
    const { record } = judgement;
    if (record.kind !== 'event') return [];
    const { agentId, sessionId, occurredAt, event } = record;
    const about = { agentId, sessionId, occurredAt };
    if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') {
      return [{ ...about, kind: 'turn', id: textOf(event.runId) }];
    }
    if (event.type !== 'CUSTOM' || (event.name !== CUSTOM.taskCompleted && event.name !== CUSTOM.taskUpdated))
      return [];
    const id = textOf(fieldsOf(event.value).task_id);
    return id === null ? [] : [{ ...about, kind: 'task', id }];
  });
}
