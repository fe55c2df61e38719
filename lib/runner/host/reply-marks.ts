import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { OpenSession, type OpenWork } from '@interlude/protocol/lifecycle/open-session';
import { setBounded } from '../adapters/bounded-map';
import { latestOwed, type OwedReply } from './owed-replies';

/** Most messages that are remembered as read: the oldest replies are waived, not answered in passing. */
const MAX_READ = 64;

/**
 * Marks each text of one session's agent with the messages that it answers.
 *
 * A text of the main thread answers the messages of its turn. In a turn that names none, it may answer a message that the
 * agent has read before and that still waits for a reply, unless a task's end woke the turn. A message on its way gets a
 * turn of its own.
 */
export class ReplyMarks {
  readonly #sessionId: string;
  readonly #owed: () => readonly OwedReply[];
  /** Messages of turns that are over: the agent has read them, and may answer them later. */
  readonly #read = new Map<string, true>();
  #isWokenByTask = false;

  constructor(sessionId: string, owed: () => readonly OwedReply[]) {
    this.#sessionId = sessionId;
    this.#owed = owed;
  }

  /** @param open the session's open work before these events */
  mark(events: readonly TimedEvent[], open: OpenWork): TimedEvent[] {
    const session = new OpenSession(open);
    return events.map((one) => {
      session.take(one.event);
      const { type, metadata } = one.event;
      if (type === 'RUN_STARTED') this.#isWokenByTask = metadata?.interlude?.trigger?.kind === 'task';
      return this.#marked(one, session.work);
    });
  }

  /** Turns that answer these are over. */
  answered(messageIds: readonly string[]): void {
    for (const id of messageIds) setBounded(this.#read, id, true, MAX_READ);
  }

  #marked(one: TimedEvent, open: OpenWork): TimedEvent {
    const { event } = one;
    if (event.type !== 'TEXT_MESSAGE_START' || event.role !== 'assistant' || event.subagentRunId !== undefined)
      return one;
    if (event.metadata?.interlude?.replyTo !== undefined) return one;
    const asked = open.turn?.userMessageIds ?? [];
    const mayOwe = asked.length === 0 && open.turn !== null && !this.#isWokenByTask;
    const owed = mayOwe ? latestOwed(this.#owed(), this.#sessionId, [...this.#read.keys()]) : null;
    const replyTo = owed === null ? asked : [owed];
    if (replyTo.length === 0) return one;
    const interlude = { ...event.metadata?.interlude, replyTo };
    return { ...one, event: { ...event, metadata: { ...event.metadata, interlude } } };
  }
}

/** The messages that these events say were answered: those of turns that end. */
export function answeredIn(events: readonly TimedEvent[]): string[] {
  return events.flatMap(({ event }) =>
    event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR'
      ? (event.metadata?.interlude?.userMessageIds ?? [])
      : [],
  );
}
