import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, numberOf, textOf } from '@interlude/protocol/fields';
import { canonicalJson } from '@interlude/protocol/json';
import { MAX_RECORD_BYTES, MAX_RECORDS_PER_REQUEST } from '@interlude/protocol/limits';
import type { EventEntry } from '@interlude/protocol/projections/event-entry';
import { NO_PLACES } from '@interlude/protocol/projections/placement';
import { TaskLedger } from '@interlude/protocol/projections/tasks';
import { EMPTY_TRANSCRIPT, foldTranscript, type TranscriptState } from '@interlude/protocol/projections/transcript';
import { placeEvents } from '@interlude/protocol/projections/turns';
import type { Task, Turn } from '@interlude/protocol/read-models';
import { requestDigest } from '@interlude/protocol/request-digest';
import { type FakeAnswer, refusal } from './fake-answer';

/** A record that was taken, with where it came from. */
export interface TakenRecord {
  producer: string;
  epoch: number;
  seq: number;
  /** When it was taken, on this machine's clock. */
  at: number;
  record: Fields;
}

export interface EventsRequest {
  producer: { id: string; epoch: number };
  records: Fields[];
}

/**
 * What a correct Interlude keeps of one runner, in memory, and shows of it: the projections are the dashboard's own. Beside
 * that it remembers everything a runner has done wrong with numbers and sizes.
 */
export class FakeLedger {
  /** Everything that was taken and is still known, in the order of its arrival. */
  taken: TakenRecord[] = [];
  /** What no correct outbox does, in sentences. */
  readonly faults: string[] = [];
  duplicates = 0;
  readonly #producers = new Map<string, { epoch: number; lastSeq: number }>();
  /** What a number stood for when it was sent first. */
  readonly #sent = new Map<string, string>();
  readonly #entries = new Map<string, EventEntry[]>();
  readonly #folded = new Map<string, { count: number; state: TranscriptState }>();
  #position = 0;

  /** Looks at what is sent, whether or not it will be taken. */
  notice({ producer, records }: EventsRequest): void {
    const { id, epoch } = producer;
    if (records.length > MAX_RECORDS_PER_REQUEST) this.#fault(`a request had ${records.length} records`);
    for (const record of records) {
      if (record.kind === 'probe') continue;
      const { seq, kind, ...content } = record;
      const key = `${id} ${epoch} ${seq}`;
      const text = `${kind} ${canonicalJson(content)}`;
      const before = this.#sent.get(key);
      if (before === undefined) this.#sent.set(key, text);
      // A report that waits may give way to a newer one, and what was refused for good to the declaration of its loss.
      else if (before !== text && !/^status /.test(before) && kind !== 'lost') {
        this.#fault(`seq ${seq} of epoch ${epoch} was first ${before.slice(0, 160)}, and then ${text.slice(0, 160)}`);
      }
      const bytes = Buffer.byteLength(JSON.stringify(record));
      if (bytes > MAX_RECORD_BYTES) this.#fault(`seq ${seq}, a record of kind ${kind}, had ${bytes} bytes`);
    }
  }

  /** Takes a request as `POST /events` does. */
  take({ producer, records }: EventsRequest): FakeAnswer {
    const { id, epoch } = producer;
    const known = this.#producers.get(id) ?? { epoch: 0, lastSeq: 0 };
    if (epoch < known.epoch) return refusal(403, 'stale_epoch', { currentEpoch: known.epoch });
    let lastSeq = epoch > known.epoch ? 0 : known.lastSeq;
    const first = numberOf(records[0]?.seq) ?? 0;
    if (first > lastSeq + 1) {
      if (records[0]?.kind !== 'probe' && epoch > known.epoch) this.#fault(`epoch ${epoch} began with seq ${first}`);
      return refusal(409, 'sequence_gap', { expectedSeq: lastSeq + 1 });
    }
    const fresh: Fields[] = [];
    for (const record of records) {
      const seq = numberOf(record.seq) ?? 0;
      if (seq > lastSeq + 1 || seq < 1) {
        this.#fault(`a request had seq ${seq} where ${lastSeq + 1} was next`);
        return refusal(400, 'malformed', {});
      }
      if (seq <= lastSeq) continue;
      lastSeq = seq;
      fresh.push(record);
    }
    this.#producers.set(id, { epoch, lastSeq });
    this.duplicates += records.length - fresh.length;
    for (const record of fresh) this.#keep(id, epoch, record);
    const duplicates = records.length - fresh.length;
    return {
      status: 200,
      body: { ackedSeq: lastSeq, accepted: fresh.length, duplicates, rejected: [], position: this.#at() },
    };
  }

  /** The database is put back: the newest records of every outbox are gone. @returns them */
  forget(count: number): TakenRecord[] {
    const gone = this.taken.slice(-count);
    this.taken = this.taken.slice(0, -count);
    for (const [id, { epoch }] of this.#producers) {
      const last = this.taken.findLast((one) => one.producer === id && one.epoch === epoch);
      this.#producers.set(id, { epoch, lastSeq: last?.seq ?? 0 });
    }
    for (const { record } of gone) {
      const entries = this.#entries.get(String(record.sessionId));
      const at = entries?.findIndex(({ event }) => event === record.event) ?? -1;
      if (at >= 0) entries?.splice(at, 1);
    }
    this.#folded.clear();
    return gone;
  }

  /** An event of the server's own. @returns its position */
  tell(sessionId: string, event: AgUiEvent): string {
    this.#position += 1;
    const entries = this.#entries.get(sessionId) ?? [];
    this.#entries.set(sessionId, entries);
    const now = Date.now();
    entries.push({ position: this.#at(), occurredAt: now, receivedAt: now, event });
    return this.#at();
  }

  /** The events of a session, the server's own among them. */
  entries(sessionId: string): readonly EventEntry[] {
    return this.#entries.get(sessionId) ?? [];
  }

  /** A session's turns, as the dashboard would show them. */
  turns(sessionId: string): readonly Turn[] {
    const entries = this.entries(sessionId);
    const before = this.#folded.get(sessionId);
    if (before?.count === entries.length) return before.state.turns;
    const state = foldTranscript(before?.state ?? EMPTY_TRANSCRIPT, entries);
    this.#folded.set(sessionId, { count: entries.length, state });
    return state.turns;
  }

  /** A session's tasks, as the dashboard would show them. */
  tasks(sessionId: string): Task[] {
    const tasks = new TaskLedger({ sessionId, agentId: '' });
    for (const placement of placeEvents(NO_PLACES, this.entries(sessionId)).placements) {
      for (const _ of tasks.apply(placement));
    }
    return [...tasks.changed()];
  }

  /** All of a text, however long: what is shown of one is cut. */
  text(sessionId: string, messageId: string): string {
    const deltas = this.entries(sessionId).filter(({ event }) => event.messageId === messageId);
    let text = '';
    for (const { event } of deltas) {
      const delta = (textOf(event.delta) ?? '').toWellFormed();
      text = event.metadata?.interlude?.whole === true ? delta : text + delta;
    }
    return text;
  }

  /** The status records that were taken, oldest first. */
  statuses(): { at: number; sessionId: string | null; status: Fields }[] {
    return this.taken.flatMap(({ at, record }) =>
      record.kind === 'status' ? [{ at, sessionId: textOf(record.sessionId), status: fieldsOf(record.status) }] : [],
    );
  }

  /** The log lines that were taken. */
  logs(): Fields[] {
    return this.taken.flatMap(({ record }) => (record.kind === 'log' ? [fieldsOf(record.log)] : []));
  }

  /** How many records were declared lost. */
  lost(): number {
    return this.taken.reduce((sum, { record }) => sum + (numberOf(fieldsOf(record.lost).count) ?? 0), 0);
  }

  #keep(producer: string, epoch: number, record: Fields): void {
    this.#position += 1;
    this.taken.push({ producer, epoch, seq: Number(record.seq), at: Date.now(), record });
    const [sessionId, event] = [textOf(record.sessionId), record.event as AgUiEvent | undefined];
    if (record.kind !== 'event' || sessionId === null || event === undefined) return;
    const value = fieldsOf(event.value);
    if (event.name === CUSTOM.requestOpened) event.value = { ...value, ...this.#opened(sessionId, value) };
    const entries = this.#entries.get(sessionId) ?? [];
    this.#entries.set(sessionId, entries);
    const occurredAt = numberOf(record.occurredAt) ?? 0;
    entries.push({ position: this.#at(), occurredAt, receivedAt: Date.now(), event });
  }

  /** What the server writes into a request that is opened. */
  #opened(sessionId: string, value: Fields): Fields {
    const position = this.#at();
    const [requestId, tool] = [textOf(value.request_id) ?? '', textOf(value.tool_name)];
    const digest = requestDigest({ sessionId, requestId, tool, input: value.input, position });
    return { digest, opened_position: position };
  }

  #at(): string {
    return String(this.#position);
  }

  #fault(sentence: string): void {
    if (this.faults.length < 20) this.faults.push(sentence);
  }
}
