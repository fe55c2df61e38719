import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import type { Frame } from '@interlude/protocol/frames';
import { type Position, positionFromNumber, positionToNumber } from '@interlude/protocol/position';
import {
  EventRedactor,
  isOutput,
  StreamPrefix,
  type StreamStep,
  streamStep,
} from '@interlude/protocol/redaction/event-redactor';
import { maskDigests, mayHaveDigest, redactLine } from '@interlude/protocol/redaction/redact-model';
import { redactValue, type Tally } from '@interlude/protocol/redaction/redact-value';
import { LONG_TEXT, prepareTexts } from '@interlude/protocol/redaction/redacted-text';
import { listedScope, reachesAgent, reachesSession, type Scope } from '@interlude/protocol/scope';
import { encodeFrame, formatTopic } from '@interlude/protocol/sse';
import { agentFromRow, inboxItemFromRow, obligationFromRow, sessionFromRow, taskFromRow } from '@/db/read-model-rows';
import type { Reader } from '@/db/reader';
import { columnText } from '@/db/table-rows';
import { Yielder } from '@/db/yield-to-loop';
import { PLAIN_DIGESTS, type ShownDigests } from '@/lib/server/access/shown-digests';
import type { EventRow, Row } from '@/lib/server/event-log/read-after';

export function topicOf(row: Row): string {
  if (row.kind === 'event') return formatTopic({ kind: 'session', sessionId: row.sessionId });
  if (row.kind === 'log') return formatTopic({ kind: 'logs', agentId: row.agentId });
  return 'fleet';
}

type RowFrame = Extract<Frame, { id?: Position }> & { event: Exclude<Row['kind'], 'event'> };

/** @param body replacement for the body of a row that is not an event */
export function rowFrame(row: Row, body?: RowFrame): string {
  const id = positionFromNumber(row.position);
  if (row.kind === 'event') return eventFrame(id, row);
  return encodeFrame({ id, ...(body ?? frameOf(row)) });
}

/** Masks the request digests that a reader may not see. Log lines are free text. */
export function withDigests(frame: string, { kind }: Row, digests: ShownDigests): string {
  if (digests === PLAIN_DIGESTS || kind === 'log' || !mayHaveDigest(frame)) return frame;
  const from = frame.indexOf(DATA) + DATA.length;
  const data = frame.slice(from, -FRAME_END.length);
  return `${frame.slice(0, from)}${JSON.stringify(maskDigests(JSON.parse(data), digests))}${FRAME_END}`;
}

const DATA = '\ndata: ';
const FRAME_END = '\n\n';

function frameOf(row: Exclude<Row, EventRow>): RowFrame {
  switch (row.kind) {
    case 'log': {
      const { position: _, ...line } = row.line;
      return { event: 'log', data: { agentId: row.agentId, ...line } };
    }
    case 'session':
      return { event: 'session', data: sessionFromRow(row.columns) };
    case 'agent':
      return { event: 'agent', data: agentFromRow(row.columns) };
    case 'task':
      return { event: 'task', data: taskFromRow(row.columns) };
    case 'obligation':
      return { event: 'obligation', data: obligationFromRow(row.columns) };
    case 'inbox':
      return { event: 'inbox', data: inboxItemFromRow(row.columns) };
  }
}

/**
 * The hot path: copies the event's JSON into the frame unparsed. A line break between tokens would end the `data` line, so
 * such a payload (ingest writes none) is serialized again.
 */
function eventFrame(id: string, row: EventRow): string {
  const payload = /[\r\n]/.test(row.payload) ? JSON.stringify(JSON.parse(row.payload)) : row.payload;
  const names = `"sessionId":${JSON.stringify(row.sessionId)},"agentId":${JSON.stringify(row.agentId)}`;
  const numbers = `"seq":${row.seq},"occurredAt":${row.occurredAt},"receivedAt":${row.receivedAt}`;
  return `id: ${id}\nevent: session-event\ndata: {${names},${numbers},"event":${payload}}\n\n`;
}

/** Filters fleet rows. Readers of events and logs were authorized when they subscribed. */
export function isInScope(row: Row, scope: Scope): boolean {
  if (scope.kind === 'everything' || row.kind === 'event' || row.kind === 'log') return true;
  const { columns } = row;
  if (row.kind === 'agent') return reachesAgent(scope, String(columns.id));
  const agentId = String(columns.agent_id);
  if (row.kind === 'session') return reachesSession(listedScope(scope), { agentId, sessionId: String(columns.id) });
  const id = columns.session_id;
  return reachesSession(scope, { agentId, sessionId: id === null ? null : String(id) });
}

/**
 * True if the row records a removal of turns after `completeTo`. A reader that has everything up to there may have
 * received some of these turns, and must resume with a gap.
 */
export function isRemovedAfter(row: Row, completeTo: number): boolean {
  if (row.kind !== 'event' || row.name !== CUSTOM.removed) return false;
  const { removed } = (JSON.parse(row.payload) as AgUiEvent).metadata?.interlude ?? {};
  return removed !== undefined && positionToNumber(removed.upTo) > completeTo;
}

/** Maximum turns of a session whose streamed text is tracked. */
const MAX_TURNS = 64;

/**
 * Builds frames without secrets.
 *
 * Ordering: a session's rows arrive in order and without gaps until `forget` drops the session. Text that is first seen
 * in the middle is read from its start, so the second half of a secret is never sent.
 * Failure: throws the database's errors. Readers that wait for the frame must resume.
 */
export class RowRedactor {
  readonly #reader: Pick<Reader, 'execute'>;
  /** By session and turn: another turn may reuse a message id. */
  readonly #sessions = new Map<string, Map<string | null, EventRedactor>>();
  #hasMissed = false;

  constructor(reader: Pick<Reader, 'execute'>) {
    this.#reader = reader;
  }

  /** Drops the state of a session without readers, whose rows no longer arrive. */
  forget(sessionId: string): void {
    this.#sessions.delete(sessionId);
  }

  /** Returns true if a row was folded into a later one before it was framed, and resets the flag. */
  takeMissed(): boolean {
    const hasMissed = this.#hasMissed;
    this.#hasMissed = false;
    return hasMissed;
  }

  /** Returns a promise only if earlier text must be read first. */
  frame(row: Row): string | Promise<string> {
    const tally: Tally = { redacted: 0 };
    if (row.kind === 'log') return rowFrame({ ...row, line: redactLine(row.line) });
    if (row.kind === 'event') return this.#eventFrame(row, tally);
    const { data, ...frame } = frameOf(row);
    return rowFrame(row, { ...frame, data: redactValue(data, tally, false) } as ReturnType<typeof frameOf>);
  }

  #eventFrame(row: EventRow, tally: Tally): string | Promise<string> {
    const event: AgUiEvent = JSON.parse(row.payload);
    const redactor = this.#redactorOf(row);
    const step = streamStep(event);
    const isSlow = row.payload.length >= LONG_TEXT || (step !== null && (redactor.lacks(step) || isOutput(step)));
    return isSlow ? this.#slowFrame(row, event, step, redactor) : framed(row, redactor.redact(event, tally));
  }

  #redactorOf({ sessionId, turnId }: EventRow): EventRedactor {
    const turns = this.#sessions.get(sessionId) ?? new Map<string | null, EventRedactor>();
    this.#sessions.set(sessionId, turns);
    const redactor = turns.get(turnId) ?? new EventRedactor(false);
    turns.delete(turnId);
    turns.set(turnId, redactor);
    // An evicted turn is read again.
    const [oldest] = turns.keys();
    if (turns.size > MAX_TURNS && oldest !== undefined) turns.delete(oldest);
    return redactor;
  }

  async #slowFrame(row: EventRow, event: AgUiEvent, step: StreamStep | null, redactor: EventRedactor): Promise<string> {
    const tally: Tally = { redacted: 0 };
    const { maybeYield } = new Yielder();
    const soFar = step !== null && redactor.lacks(step) ? await readStreamed(this.#reader, row, step) : undefined;
    if (soFar === null) this.#hasMissed = true;
    if (step !== null && isOutput(step)) {
      const output = { event, occurredAt: row.occurredAt };
      return framed(row, await redactor.redactOutput(output, step, tally, maybeYield, soFar));
    }
    await prepareTexts([event, soFar?.text], maybeYield);
    return framed(row, redactor.redact(event, tally, soFar));
  }
}

function framed(row: EventRow, event: AgUiEvent): string {
  return rowFrame({ ...row, payload: JSON.stringify(event) });
}

const PAGE = 500;

/**
 * Reads the text streamed up to and including an event.
 *
 * @returns null if the event no longer exists: it was folded into a later one, which holds the whole text
 */
async function readStreamed(
  reader: Pick<Reader, 'execute'>,
  { sessionId, position, turnId }: Pick<EventRow, 'sessionId' | 'position' | 'turnId'>,
  { key, id }: StreamStep,
): Promise<StreamPrefix | null> {
  const clause = key.startsWith('output ')
    ? `INDEXED BY events_of_output WHERE name = 'task:output' AND`
    : `INDEXED BY events_by_entity WHERE entity_id IS NOT NULL AND type <> 'CUSTOM' AND`;
  const soFar = new StreamPrefix(key);
  const yielder = new Yielder();
  for (let after = 0; ; ) {
    const { rows } = await reader.execute({
      sql: `SELECT position, occurred_at, payload FROM events ${clause} session_id = ? AND entity_id = ?
        AND position > ? AND position <= ? AND turn_id IS ? ORDER BY position LIMIT ${PAGE}`,
      args: [columnText(sessionId), columnText(id), after, position, turnId],
    });
    for (const row of rows) {
      soFar.add(JSON.parse(String(row.payload)), Number(row.occurred_at));
      if (yielder.isDue) await yielder.yieldIfDue();
    }
    const last = rows.at(-1);
    if (rows.length === PAGE && last !== undefined) after = Number(last.position);
    else return rows.length > 0 && Number(last?.position) === position ? soFar : null;
  }
}
