import { type AgUiEvent, CUSTOM } from '@interlude/protocol/ag-ui';
import { type Frame, formatTopic } from '@interlude/protocol/frames';
import { type Position, positionFromNumber, positionToNumber } from '@interlude/protocol/position';
import { EventRedactor, isOutput, type Step, stepOf, TextSoFar } from '@interlude/protocol/redaction/event-redactor';
import { maskDigests, mayHaveDigest } from '@interlude/protocol/redaction/mask-digests';
import { redactLine } from '@interlude/protocol/redaction/redact-model';
import { redactValue, type Tally } from '@interlude/protocol/redaction/redact-value';
import { LONG_TEXT, prepareTexts } from '@interlude/protocol/redaction/redacted-text';
import { listedScope, reachesAgent, reachesSession, type Scope } from '@interlude/protocol/scope';
import { encodeFrame } from '@interlude/protocol/sse';
import { agentFromRow, inboxItemFromRow, obligationFromRow, sessionFromRow, taskFromRow } from '@/db/read-model-rows';
import type { Reader } from '@/db/reader';
import { columnText } from '@/db/table-rows';
import { Yielder } from '@/db/yield-to-loop';
import { PLAIN_DIGESTS, type ShownDigests } from '@/lib/server/access/shown-digests';
import type { EventRow, Row } from '@/lib/server/event-log/read-after';

/** The topic that carries a row. */
export function topicOf(row: Row): string {
  if (row.kind === 'event') return formatTopic({ kind: 'session', sessionId: row.sessionId });
  if (row.kind === 'log') return formatTopic({ kind: 'logs', agentId: row.agentId });
  return 'fleet';
}

type RowFrame = Extract<Frame, { id?: Position }> & { event: Exclude<Row['kind'], 'event'> };

/**
 * A row as the text of its frame.
 *
 * @param told what to tell in place of a row of the fleet
 */
export function rowFrame(row: Row, told?: RowFrame): string {
  const id = positionFromNumber(row.position);
  if (row.kind === 'event') return eventFrame(id, row);
  return encodeFrame({ id, ...(told ?? frameOf(row)) });
}

/** The text of a row's frame with the digests that its readers may see. */
export function withDigests(frame: string, { kind }: Row, digests: ShownDigests): string {
  // an agent's log lines are free text
  if (digests === PLAIN_DIGESTS || kind === 'log' || !mayHaveDigest(frame)) return frame;
  const from = frame.indexOf(DATA) + DATA.length;
  const data = frame.slice(from, -FRAME_END.length);
  return `${frame.slice(0, from)}${JSON.stringify(maskDigests(JSON.parse(data), digests))}${FRAME_END}`;
}

const DATA = '\ndata: ';
const FRAME_END = '\n\n';

/** A frame without its id. */
export function frameOf(row: Exclude<Row, EventRow>): RowFrame {
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
 * The hot path: the event is JSON already and goes into the frame as it stands, unparsed. A line break between its
 * tokens would end the frame's data line, so such a payload (ingest writes none) is serialised again.
 */
function eventFrame(id: string, row: EventRow): string {
  const payload = /[\r\n]/.test(row.payload) ? JSON.stringify(JSON.parse(row.payload)) : row.payload;
  const names = `"sessionId":${JSON.stringify(row.sessionId)},"agentId":${JSON.stringify(row.agentId)}`;
  const numbers = `"seq":${row.seq},"occurredAt":${row.occurredAt},"receivedAt":${row.receivedAt}`;
  return `id: ${id}\nevent: session-event\ndata: {${names},${numbers},"event":${payload}}\n\n`;
}

/**
 * Whether a row of the fleet is in a scope. Events and log lines are, because nobody listens to a session or a log that
 * is not in his.
 */
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
 * Whether a row tells that turns were removed which a reader may have been told in part: it has everything up to `whole`,
 * and what it has read since was read while they went. It has to resume, which is then a gap.
 */
export function isRemovedAfter(row: Row, whole: number): boolean {
  if (row.kind !== 'event' || row.name !== CUSTOM.removed) return false;
  const { removed } = (JSON.parse(row.payload) as AgUiEvent).metadata?.interlude ?? {};
  return removed !== undefined && positionToNumber(removed.upTo) > whole;
}

/** Most turns of a session that are followed at a time. */
const MOST_TURNS = 64;

/**
 * Frames without secrets, for readers who are told none.
 *
 * Ordering: a session's rows come in order and without a hole, as long as it is not forgotten. A text that is met in its
 * middle is read from its beginning first, so that nobody is told the second half of a secret.
 * Failure: throws what the database throws; whoever waits for the frame has to resume.
 */
export class RowRedactor {
  readonly #reader: Pick<Reader, 'execute'>;
  /** By session, and in it by turn: a message is shown where its turn is, and another turn may use its id again. */
  readonly #sessions = new Map<string, Map<string | null, EventRedactor>>();

  #hasMissed = false;

  constructor(reader: Pick<Reader, 'execute'>) {
    this.#reader = reader;
  }

  /** Nobody listens to it any more, so that its rows do not come. */
  forget(sessionId: string): void {
    this.#sessions.delete(sessionId);
  }

  /** Whether, since the last call, a row was folded into a later one before it was framed: that one has its text. */
  takeMissed(): boolean {
    const hasMissed = this.#hasMissed;
    this.#hasMissed = false;
    return hasMissed;
  }

  /** A promise only where something has to be read first. */
  frame(row: Row): string | Promise<string> {
    const tally: Tally = { redacted: 0 };
    if (row.kind === 'log') return rowFrame({ ...row, line: redactLine(row.line) });
    if (row.kind === 'event') return this.#eventFrame(row, tally);
    const { data, ...frame } = frameOf(row);
    return rowFrame(row, { ...frame, data: redactValue(data, tally, false) } as ReturnType<typeof frameOf>);
  }

  #eventFrame(row: EventRow, tally: Tally): string | Promise<string> {
    const event: AgUiEvent = JSON.parse(row.payload);
    const known = this.#of(row);
    const step = stepOf(event);
    const takesTurns = row.payload.length >= LONG_TEXT || (step !== null && (known.lacks(step) || isOutput(step)));
    return takesTurns ? this.#inTurns(row, event, step, known) : framed(row, known.redact(event, tally));
  }

  #of({ sessionId, turnId }: EventRow): EventRedactor {
    const turns = this.#sessions.get(sessionId) ?? new Map<string | null, EventRedactor>();
    this.#sessions.set(sessionId, turns);
    const known = turns.get(turnId) ?? new EventRedactor(false);
    turns.delete(turnId);
    turns.set(turnId, known);
    // what is forgotten is read again
    const [oldest] = turns.keys();
    if (turns.size > MOST_TURNS && oldest !== undefined) turns.delete(oldest);
    return known;
  }

  async #inTurns(row: EventRow, event: AgUiEvent, step: Step | null, known: EventRedactor): Promise<string> {
    const tally: Tally = { redacted: 0 };
    const yielder = new Yielder();
    const soFar = step !== null && known.lacks(step) ? await readStreamed(this.#reader, row, step) : undefined;
    if (soFar === null) this.#hasMissed = true;
    if (step !== null && isOutput(step)) {
      return framed(
        row,
        await known.redactOutput({ event, occurredAt: row.occurredAt }, step, tally, yielder.restIfDue, soFar),
      );
    }
    await prepareTexts([event, soFar?.text], yielder.restIfDue);
    return framed(row, known.redact(event, tally, soFar));
  }
}

function framed(row: EventRow, event: AgUiEvent): string {
  return rowFrame({ ...row, payload: JSON.stringify(event) });
}

/** How much is read at once. */
const PAGE = 500;

/**
 * What has come of something that streams, up to and with an event of it.
 *
 * @returns null if that event is not there any more: it was folded into a later one, which has all of it
 */
async function readStreamed(
  reader: Pick<Reader, 'execute'>,
  { sessionId, position, turnId }: Pick<EventRow, 'sessionId' | 'position' | 'turnId'>,
  { key, id }: Step,
): Promise<TextSoFar | null> {
  const which = key.startsWith('output ')
    ? `INDEXED BY events_of_output WHERE name = 'task:output' AND`
    : `INDEXED BY events_by_entity WHERE entity_id IS NOT NULL AND type <> 'CUSTOM' AND`;
  const soFar = new TextSoFar(key);
  const yielder = new Yielder();
  for (let after = 0; ; ) {
    const { rows } = await reader.execute({
      sql: `SELECT position, occurred_at, payload FROM events ${which} session_id = ? AND entity_id = ?
        AND position > ? AND position <= ? AND turn_id IS ? ORDER BY position LIMIT ${PAGE}`,
      args: [columnText(sessionId), columnText(id), after, position, turnId],
    });
    for (const row of rows) {
      soFar.add(JSON.parse(String(row.payload)), Number(row.occurred_at));
      if (yielder.isDue) await yielder.rest();
    }
    const last = rows.at(-1);
    if (rows.length === PAGE && last !== undefined) after = Number(last.position);
    else return rows.length > 0 && Number(last?.position) === position ? soFar : null;
  }
}
