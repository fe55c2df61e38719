import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, numberOf, textOf } from '@interlude/protocol/fields';
import { canonicalJson } from '@interlude/protocol/json';
import { MAX_RECORD_BYTES, MAX_RECORDS_PER_REQUEST } from '@interlude/protocol/limits';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import { NO_PLACES } from '@interlude/protocol/projections/placement';
import { TaskLedger } from '@interlude/protocol/projections/tasks';
import { EMPTY_TRANSCRIPT, foldTranscript, type TranscriptState } from '@interlude/protocol/projections/transcript';
import { placeEvents } from '@interlude/protocol/projections/turns';
import type { Task, Turn } from '@interlude/protocol/read-models';
import { requestDigest } from '@interlude/protocol/request-digest';

export interface FakeResponse {
  status: number;
  body: Fields;
}

export function errorResponse(status: number, code: string, details: Fields = {}): FakeResponse {
  return { status, body: { error: { code, message: `This is a test: ${code}.`, ...details } } };
}

interface AcceptedRecord {
  producer: string;
  epoch: number;
  seq: number;
  /** When it was accepted, in epoch milliseconds of this machine. */
  at: number;
  record: Fields;
}

export interface EventsRequest {
  producer: { id: string; epoch: number };
  records: Fields[];
}

const MAX_FAULTS = 20;

/**
 * The state of a correct Interlude for one runner, in memory, seen through the dashboard's own projections. Also
 * collects the runner's mistakes with numbers and sizes.
 */
export class FakeEventLog {
  /** Accepted records, except those forgotten since, in order of arrival. */
  accepted: AcceptedRecord[] = [];
  /** Mistakes of the outbox, as sentences. */
  readonly faults: string[] = [];
  duplicates = 0;
  readonly #producers = new Map<string, { epoch: number; lastSeq: number }>();
  /** The content first sent under each producer, epoch and seq. */
  readonly #sent = new Map<string, string>();
  readonly #entries = new Map<string, EventEntry[]>();
  readonly #folded = new Map<string, { count: number; state: TranscriptState }>();
  #position = 0;

  /** Collects faults of a request, whether or not it will be accepted. */
  inspect({ producer: { id, epoch }, records }: EventsRequest): void {
    if (records.length > MAX_RECORDS_PER_REQUEST) this.#fault(`a request had ${records.length} records`);
    for (const record of records) {
      if (record.kind === 'probe') continue;
      const { seq, kind, ...content } = record;
      const key = `${id} ${epoch} ${seq}`;
      const text = `${kind} ${canonicalJson(content)}`;
      const first = this.#sent.get(key);
      if (first === undefined) this.#sent.set(key, text);
      // An outbox may replace a queued status record with a newer one, and a rejected record with its `lost` record.
      else if (first !== text && !/^status /.test(first) && kind !== 'lost') {
        this.#fault(`seq ${seq} of epoch ${epoch} was first ${first.slice(0, 160)}, and then ${text.slice(0, 160)}`);
      }
      const bytes = Buffer.byteLength(JSON.stringify(record));
      if (bytes > MAX_RECORD_BYTES) this.#fault(`seq ${seq}, a record of kind ${kind}, had ${bytes} bytes`);
    }
  }

  /** Handles a request as `POST /events` does. */
  append({ producer: { id, epoch }, records }: EventsRequest): FakeResponse {
    const known = this.#producers.get(id) ?? { epoch: 0, lastSeq: 0 };
    if (epoch < known.epoch) return errorResponse(403, 'stale_epoch', { currentEpoch: known.epoch });
    let lastSeq = epoch > known.epoch ? 0 : known.lastSeq;
    const first = numberOf(records[0]?.seq) ?? 0;
    if (first > lastSeq + 1) {
      if (records[0]?.kind !== 'probe' && epoch > known.epoch) this.#fault(`epoch ${epoch} started with seq ${first}`);
      return errorResponse(409, 'sequence_gap', { expectedSeq: lastSeq + 1 });
    }
    const fresh: Fields[] = [];
    for (const record of records) {
      const seq = numberOf(record.seq) ?? 0;
      if (seq > lastSeq + 1 || seq < 1) {
        this.#fault(`a request had seq ${seq} where ${lastSeq + 1} was next`);
        return errorResponse(400, 'malformed');
      }
      if (seq <= lastSeq) continue;
      lastSeq = seq;
      fresh.push(record);
    }
    this.#producers.set(id, { epoch, lastSeq });
    for (const record of fresh) this.#store(id, epoch, record);
    const duplicates = records.length - fresh.length;
    this.duplicates += duplicates;
    const position = String(this.#position);
    return { status: 200, body: { ackedSeq: lastSeq, accepted: fresh.length, duplicates, rejected: [], position } };
  }

  /** Drops the newest records of every producer, like a database restored from a backup. @returns them */
  forget(count: number): AcceptedRecord[] {
    const dropped = this.accepted.splice(-count);
    for (const [id, { epoch }] of this.#producers) {
      const last = this.accepted.findLast((one) => one.producer === id && one.epoch === epoch);
      this.#producers.set(id, { epoch, lastSeq: last?.seq ?? 0 });
    }
    for (const { record } of dropped) {
      const entries = this.#entries.get(String(record.sessionId));
      const at = entries?.findIndex(({ event }) => event === record.event) ?? -1;
      if (at >= 0) entries?.splice(at, 1);
    }
    this.#folded.clear();
    return dropped;
  }

  /** Appends a server event. @returns its position */
  emit(sessionId: string, event: AgUiEvent): string {
    this.#position += 1;
    return this.#append(sessionId, Date.now(), event);
  }

  /** The events of a session, including those of the server. */
  entries(sessionId: string): readonly EventEntry[] {
    return this.#entries.get(sessionId) ?? [];
  }

  turns(sessionId: string): readonly Turn[] {
    const entries = this.entries(sessionId);
    const before = this.#folded.get(sessionId);
    if (before?.count === entries.length) return before.state.turns;
    const state = foldTranscript(before?.state ?? EMPTY_TRANSCRIPT, entries);
    this.#folded.set(sessionId, { count: entries.length, state });
    return state.turns;
  }

  tasks(sessionId: string): Task[] {
    const tasks = new TaskLedger({ sessionId, agentId: '' });
    for (const placement of placeEvents(NO_PLACES, this.entries(sessionId)).placements) {
      for (const _ of tasks.apply(placement));
    }
    return [...tasks.changed()];
  }

  /** The full text of a message; the transcript truncates long ones. */
  text(sessionId: string, messageId: string): string {
    let text = '';
    for (const { event } of this.entries(sessionId)) {
      if (event.messageId !== messageId) continue;
      const delta = (textOf(event.delta) ?? '').toWellFormed();
      text = event.metadata?.interlude?.whole === true ? delta : text + delta;
    }
    return text;
  }

  /** The accepted status records, oldest first. */
  statuses(): Fields[] {
    return this.accepted.flatMap(({ record }) => (record.kind === 'status' ? [fieldsOf(record.status)] : []));
  }

  logs(): Fields[] {
    return this.accepted.flatMap(({ record }) => (record.kind === 'log' ? [fieldsOf(record.log)] : []));
  }

  /** The number of records declared lost. */
  lost(): number {
    return this.accepted.reduce((sum, { record }) => sum + (numberOf(fieldsOf(record.lost).count) ?? 0), 0);
  }

  #store(producer: string, epoch: number, record: Fields): void {
    this.#position += 1;
    this.accepted.push({ producer, epoch, seq: Number(record.seq), at: Date.now(), record });
    const [sessionId, event] = [textOf(record.sessionId), record.event as AgUiEvent | undefined];
    if (record.kind !== 'event' || sessionId === null || event === undefined) return;
    if (event.name === CUSTOM.requestOpened) {
      // Overwrites the producer's values, as the server does.
      const value = fieldsOf(event.value);
      const position = String(this.#position);
      const [requestId, tool] = [textOf(value.request_id) ?? '', textOf(value.tool_name)];
      const digest = requestDigest({ sessionId, requestId, tool, input: value.input, position });
      event.value = { ...value, digest, opened_position: position };
    }
    this.#append(sessionId, numberOf(record.occurredAt) ?? 0, event);
  }

  #append(sessionId: string, occurredAt: number, event: AgUiEvent): string {
    const entries = this.#entries.get(sessionId) ?? [];
    this.#entries.set(sessionId, entries);
    const position = String(this.#position);
    entries.push({ position, occurredAt, receivedAt: Date.now(), event });
    return position;
  }

  #fault(sentence: string): void {
    if (this.faults.length < MAX_FAULTS) this.faults.push(sentence);
  }
}
