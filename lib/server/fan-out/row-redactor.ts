import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { EventRedactor, isOutput, type Step, stepOf } from '@interlude/protocol/redaction/event-redactor';
import { redactLine } from '@interlude/protocol/redaction/redact-model';
import { redactValue, type Tally } from '@interlude/protocol/redaction/redact-value';
import { LONG_TEXT, prepareTexts } from '@interlude/protocol/redaction/redacted-text';
import { Pace } from '@/db/next-turn';
import type { Reader } from '@/db/reader';
import type { EventRow, Row } from '@/lib/server/event-log/rows';
import { readSoFar } from './read-so-far';
import { frameOf, rowFrame } from './row-frame';

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
    const pace = new Pace();
    const soFar = step !== null && known.lacks(step) ? await readSoFar(this.#reader, row, step) : undefined;
    if (soFar === null) this.#hasMissed = true;
    if (step !== null && isOutput(step)) {
      return framed(
        row,
        await known.redactOutput({ event, occurredAt: row.occurredAt }, step, tally, pace.restIfDue, soFar),
      );
    }
    await prepareTexts([event, soFar?.text], pace.restIfDue);
    return framed(row, known.redact(event, tally, soFar));
  }
}

function framed(row: EventRow, event: AgUiEvent): string {
  return rowFrame({ ...row, payload: JSON.stringify(event) });
}
