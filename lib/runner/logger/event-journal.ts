import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { counted, EventLines } from './event-lines';
import type { Logger } from './logger';

/**
 * Writes into a runner's log what its agent's events say, with the events' own times, and at debug that they were
 * handed over.
 *
 * Ordering: told before the events themselves are stored, in the same tick: both reach the outbox's file, or neither.
 */
export class EventJournal {
  readonly #logger: Logger;
  readonly #source: Logger;
  /** Behind each line. */
  readonly #of: string;
  readonly #lines = new EventLines();

  /**
   * @param source the component that hands events over
   * @param sessionId where the log is of several sessions: each line names its own
   */
  constructor(logger: Logger, source: string, sessionId: string | null = null) {
    this.#logger = logger;
    this.#of = sessionId === null ? '' : ` [session ${sessionId}]`;
    this.#source = logger.child(source);
  }

  tell(events: readonly TimedEvent[]): void {
    const [first] = events;
    if (first === undefined) return;
    this.#source.log('debug', `tells of ${counted(events)}${this.#of}`, { at: first.occurredAt });
    for (const { at, level, component, message } of this.#lines.read(events)) {
      this.#logger.child(component).log(level, message + this.#of, { at });
    }
  }

  /** These were told by an earlier process: only what they are remembered for counts. */
  learn(events: readonly TimedEvent[]): void {
    this.#lines.read(events);
  }
}
