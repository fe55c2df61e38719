import type { TimedEvent } from '@interlude/protocol/ag-ui';
import type { EmittedEvent, WireAdapter, WireEnd, WireFrame } from '../adapters/wire';
import { setBounded } from '../adapters/wire';
import { answeredMessageIds, ReplyAnnotator } from '../host/obligations';
import type { SourceContext } from '../host/source';
import type { Cursor } from '../outbox/statements';

export interface WireFeedOptions {
  adapter: WireAdapter;
  context: SourceContext;
  record?: ((frame: WireFrame) => void) | undefined;
  /** Called with the emitted events. */
  onEmitted?: (events: readonly EmittedEvent[]) => void;
  /** Called when turns that answer these messages have ended. */
  onAnswered?: (sessionId: string, messageIds: readonly string[]) => void;
  now?: () => number;
}

/** Sessions with reply marks. */
const MAX_MARKS = 1_000;

/**
 * Passes every frame between a source and its agent to the adapter and the recording, and the adapter's events to the
 * dashboard.
 *
 * Ordering: the events of a session leave in the order of the frames; events of timeouts come in between, when due.
 */
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
   * @param cursors the position after this frame, stored with the events of `ofSession` (default: the session of the first
   *   event). Functions are called once the adapter has read the frame
   * @returns once everything is stored
   */
  pass(
    frame: WireFrame,
    cursors: readonly Cursor[] | (() => readonly Cursor[]) = [],
    ofSession?: string | (() => string | undefined),
  ): Promise<void> {
    this.#options.record?.(frame);
    const events = this.#options.adapter.read(frame, this.#now());
    const session = typeof ofSession === 'function' ? ofSession() : ofSession;
    return this.#emit(events, typeof cursors === 'function' ? cursors() : cursors, session);
  }

  /** Ends the process or connection. */
  ended(end: WireEnd): Promise<void> {
    const { exitCode: code = null, signal = null, ...rest } = end;
    this.#options.record?.({ dir: 'in', msg: { exit: { code, signal, ...rest } } });
    return this.#emit(this.#options.adapter.ended(end, this.#now()));
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  async #emit(output: readonly EmittedEvent[], cursors: readonly Cursor[] = [], ofSession?: string): Promise<void> {
    const { context, onEmitted, onAnswered } = this.#options;
    this.#startTimer();
    const bySession = new Map<string, TimedEvent[]>();
    if (cursors.length > 0 && ofSession !== undefined) bySession.set(ofSession, []);
    for (const { sessionId, occurredAt, event } of output) {
      const events = bySession.get(sessionId) ?? [];
      events.push({ occurredAt, event });
      bySession.set(sessionId, events);
    }
    const home = ofSession ?? output[0]?.sessionId;
    if (home === undefined && cursors.length > 0) throw new Error('cursors need a session');
    const stored = [...bySession].map(([sessionId, events]) => {
      const marks = this.#marks.get(sessionId) ?? new ReplyAnnotator(sessionId, () => context.obligations());
      if (!this.#marks.has(sessionId)) setBounded(this.#marks, sessionId, marks, MAX_MARKS);
      const marked = marks.mark(events, context.openWork(sessionId));
      const done = context.emit(sessionId, marked, sessionId === home ? cursors : []);
      const answered = answeredMessageIds(marked);
      marks.answered(answered);
      if (answered.length > 0) onAnswered?.(sessionId, answered);
      return done;
    });
    if (output.length > 0) onEmitted?.(output);
    await Promise.all(stored);
  }

  #startTimer(): void {
    const { dueAt } = this.#options.adapter;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (dueAt === null) return;
    const wait = Math.max(0, dueAt - this.#now());
    this.#timer = setTimeout(() => void this.#emit(this.#options.adapter.elapsed(this.#now())), wait);
    this.#timer.unref();
  }
}
