import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { OpenSession, type OpenWork } from '@interlude/protocol/lifecycle/open-session';
import type { ObligationList } from '@interlude/protocol/read-models';
import * as z from 'zod';
import { remember } from '../adapters/remember';
import { connectionMessage, type Endpoint, requestServer } from '../server-request';
import { withDeadline } from '../with-deadline';

/**
 * What the agent owes, in memory, so that the end of a turn never waits for the server.
 *
 * Ordering: one request at a time; a call during one gets its result, except `markDirty`, which asks again after it.
 * Failure: keeps what it had, and logs that at debug. An answer that is not a list counts as an empty one.
 */
export type PendingReply = Pick<
  ObligationList['obligations'][number],
  'messageId' | 'sessionId' | 'from' | 'text' | 'sentAt'
>;

/** Asks the server. Rejects if that fails. */
type FetchReplies = (signal: AbortSignal) => Promise<unknown>;

const EVERY_MS = 10_000;
/** Changes come in groups. */
const DIRTY_MS = 400;
const TIMEOUT_MS = 5_000;

const pendingReply = z.looseObject({
  messageId: z.string(),
  sessionId: z.string(),
  from: z.looseObject({ kind: z.enum(['person', 'agent']), id: z.string() }),
  text: z.string(),
  sentAt: z.number(),
});

export class PendingReplies {
  readonly #ask: FetchReplies;
  readonly #onError: (message: string) => void;
  readonly #stopped = new AbortController();
  #replies: readonly PendingReply[] = [];
  #running: Promise<void> | null = null;
  #every: NodeJS.Timeout | null = null;
  #dirty: NodeJS.Timeout | null = null;

  constructor(ask: FetchReplies, onError: (message: string) => void) {
    this.#ask = ask;
    this.#onError = onError;
  }

  /** Asks now, and keeps what is known fresh until `stop`. */
  start(): void {
    if (this.#every || this.#stopped.signal.aborted) return;
    this.#every = setInterval(() => void this.refresh(), EVERY_MS).unref();
    void this.refresh();
  }

  /** A new list each time, with frozen entries. Never throws, never waits. */
  get(): PendingReply[] {
    return this.#replies.slice();
  }

  /** Asks now, or joins the request that is under way. Never rejects. */
  refresh(): Promise<void> {
    this.#running ??= this.#refresh().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Something may have changed. The first call starts the wait; those within it are one with it. */
  markDirty(): void {
    if (this.#dirty || this.#stopped.signal.aborted) return;
    this.#dirty = setTimeout(async () => {
      this.#dirty = null;
      // The running request may have been sent before the change.
      await this.#running;
      await this.refresh();
    }, DIRTY_MS).unref();
  }

  stop(): void {
    this.#stopped.abort();
    if (this.#every) clearInterval(this.#every);
    if (this.#dirty) clearTimeout(this.#dirty);
  }

  async #refresh(): Promise<void> {
    const { signal } = this.#stopped;
    if (signal.aborted) return;
    try {
      const answer = await withDeadline(TIMEOUT_MS, signal, this.#ask);
      // The list itself is not frozen: copying a frozen one takes twenty times as long.
      this.#replies = (Array.isArray(answer) ? answer : []).flatMap((item) => {
        const { data } = pendingReply.safeParse(item);
        return data === undefined ? [] : [Object.freeze(data as PendingReply)];
      });
    } catch (error) {
      if (signal.aborted) return;
      this.#onError(`what is owed could not be asked, the last answer stands: ${connectionMessage(error)}`);
    }
  }
}

/** @throws Error when the server can't be asked or refuses */
export async function fetchPendingReplies(endpoint: Endpoint, agentId: string, signal: AbortSignal): Promise<unknown> {
  const path = `/agents/${encodeURIComponent(agentId)}/reply-obligations`;
  const response = await requestServer(endpoint, path, { signal });
  if (response.ok) return ((await response.json()) as { obligations?: unknown }).obligations;
  await response.body?.cancel();
  throw new Error(`${path} answered ${response.status}`);
}

/** The newest of these messages that a person in the session waits for a reply to, or null. */
export function latestPendingReply(
  owed: readonly PendingReply[],
  sessionId: string,
  among: readonly string[],
): string | null {
  const ofSession = owed.filter(
    (one) => one.sessionId === sessionId && one.from.kind === 'person' && among.includes(one.messageId),
  );
  return ofSession.sort((a, b) => b.sentAt - a.sentAt)[0]?.messageId ?? null;
}

/** Most messages that are remembered as read: the oldest replies are waived, not answered in passing. */
const MAX_READ = 64;

/**
 * Marks each text of one session's agent with the messages that it answers.
 *
 * A text of the main thread answers the messages of its turn. In a turn that names none, it may answer a message that the
 * agent has read before and that still waits for a reply, unless a task's end woke the turn. A message on its way gets a
 * turn of its own.
 */
export class ReplyAnnotator {
  readonly #sessionId: string;
  readonly #owed: () => readonly PendingReply[];
  /** Messages of turns that are over: the agent has read them, and may answer them later. */
  readonly #read = new Map<string, true>();
  #isWokenByTask = false;

  constructor(sessionId: string, owed: () => readonly PendingReply[]) {
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
    for (const id of messageIds) remember(this.#read, id, true, MAX_READ);
  }

  #marked(one: TimedEvent, open: OpenWork): TimedEvent {
    const { event } = one;
    if (event.type !== 'TEXT_MESSAGE_START' || event.role !== 'assistant' || event.subagentRunId !== undefined)
      return one;
    if (event.metadata?.interlude?.replyTo !== undefined) return one;
    const asked = open.turn?.userMessageIds ?? [];
    const mayOwe = asked.length === 0 && open.turn !== null && !this.#isWokenByTask;
    const owed = mayOwe ? latestPendingReply(this.#owed(), this.#sessionId, [...this.#read.keys()]) : null;
    const replyTo = owed === null ? asked : [owed];
    if (replyTo.length === 0) return one;
    const interlude = { ...event.metadata?.interlude, replyTo };
    return { ...one, event: { ...event, metadata: { ...event.metadata, interlude } } };
  }
}

/** The messages that these events say were answered: those of turns that end. */
export function answeredMessageIds(events: readonly TimedEvent[]): string[] {
  return events.flatMap(({ event }) =>
    event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR'
      ? (event.metadata?.interlude?.userMessageIds ?? [])
      : [],
  );
}
