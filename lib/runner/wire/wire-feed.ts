import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { remember } from '../adapters/remember';
import type { ToldEvent, WireAdapter, WireEnd, WireFrame } from '../adapters/wire';
import { answeredMessageIds, ReplyAnnotator } from '../host/pending-replies';
import type { SourceContext } from '../host/source';
import type { Cursor } from '../outbox/statements';

/**
 * Everything that passes between a source and its agent goes through here, to the adapter, to the recording if one is
 * made, and what the adapter makes of it to the dashboard.
 *
 * Ordering: the events of a session leave in the order in which the frames passed; what time alone says comes between
 * them when it is due.
 */
export interface WireFeedOptions {
  adapter: WireAdapter;
  around: SourceContext;
  record?: ((frame: WireFrame) => void) | undefined;
  /** Told of what was emitted, after it has been handed over. */
  onTold?: (events: readonly ToldEvent[]) => void;
  /** Turns of this session that answer these messages have ended. */
  onAnswered?: (sessionId: string, messageIds: readonly string[]) => void;
  now?: () => number;
}

/** Most sessions of which it is known what their agents have read. */
const MAX_MARKS = 1_000;

export class WireFeed {
  readonly #options: WireFeedOptions;
  readonly #now: () => number;
  readonly #marks = new Map<string, ReplyAnnotator>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: WireFeedOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
  }

  /**
   * @param cursors stored with the events of `ofSession`, by default that of the first event: the place behind this
   *   frame; functions are asked once the adapter has read it
   * @returns once it is all stored
   */
  pass(
    frame: WireFrame,
    cursors: readonly Cursor[] | (() => readonly Cursor[]) = [],
    ofSession?: string | (() => string | undefined),
  ): Promise<void> {
    this.#options.record?.(frame);
    const told = this.#options.adapter.read(frame, this.#now());
    const session = typeof ofSession === 'function' ? ofSession() : ofSession;
    return this.#tell(told, typeof cursors === 'function' ? cursors() : cursors, session);
  }

  /** The process or connection is gone. */
  ended(end: WireEnd): Promise<void> {
    const { exitCode: code = null, signal = null, ...said } = end;
    this.#options.record?.({ dir: 'in', msg: { exit: { code, signal, ...said } } });
    return this.#tell(this.#options.adapter.ended(end, this.#now()));
  }

  /** Nothing more is told by time alone. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  async #tell(told: readonly ToldEvent[], cursors: readonly Cursor[] = [], ofSession?: string): Promise<void> {
    const { around, onTold, onAnswered } = this.#options;
    this.#arm();
    const bySession = new Map<string, TimedEvent[]>();
    if (cursors.length > 0 && ofSession !== undefined) bySession.set(ofSession, []);
    for (const { sessionId, occurredAt, event } of told) {
      const events = bySession.get(sessionId) ?? [];
      events.push({ occurredAt, event });
      bySession.set(sessionId, events);
    }
    const home = ofSession ?? told[0]?.sessionId;
    if (home === undefined && cursors.length > 0) throw new Error('a place in a stream belongs to a session');
    const stored = [...bySession].map(([sessionId, events]) => {
      const marks = this.#marks.get(sessionId) ?? new ReplyAnnotator(sessionId, () => around.owed());
      if (!this.#marks.has(sessionId)) remember(this.#marks, sessionId, marks, MAX_MARKS);
      const marked = marks.mark(events, around.openWork(sessionId));
      const done = around.emit(sessionId, marked, sessionId === home ? cursors : []);
      const answered = answeredMessageIds(marked);
      marks.answered(answered);
      if (answered.length > 0) onAnswered?.(sessionId, answered);
      return done;
    });
    if (told.length > 0) onTold?.(told);
    await Promise.all(stored);
  }

  /** Wakes when time alone will say something. */
  #arm(): void {
    const { dueAt } = this.#options.adapter;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (dueAt === null) return;
    const wait = Math.max(0, dueAt - this.#now());
    this.#timer = setTimeout(() => void this.#tell(this.#options.adapter.elapsed(this.#now())), wait);
    this.#timer.unref();
  }
}
