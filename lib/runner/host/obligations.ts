import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { OpenSession, type OpenWork } from '@interlude/protocol/lifecycle/open-session';
import type { ObligationList } from '@interlude/protocol/read-models';
import * as z from 'zod';
import { setBounded } from '../adapters/wire';
import { connectionMessage, type Endpoint, requestServer, withDeadline } from './server-request';

export type OpenObligation = Pick<
  ObligationList['obligations'][number],
  'messageId' | 'sessionId' | 'from' | 'text' | 'sentAt'
>;

type FetchObligations = (signal: AbortSignal) => Promise<unknown>;

const EVERY_MS = 10_000;
/** Delay that batches changes. */
const DIRTY_MS = 400;
const TIMEOUT_MS = 5_000;

const openObligation = z.looseObject({
  messageId: z.string(),
  sessionId: z.string(),
  from: z.looseObject({ kind: z.enum(['person', 'agent']), id: z.string() }),
  text: z.string(),
  sentAt: z.number(),
});

/**
 * Pending replies of the agent, kept in memory so that ending a turn never waits for the server.
 *
 * Ordering: one request at a time. Calls during a request share its result, except `markDirty`, which refreshes
 * afterwards.
 * Failure: keeps the last result and logs at debug. A response that is not a list counts as empty.
 */
export class ObligationCache {
  readonly #fetch: FetchObligations;
  readonly #onError: (message: string) => void;
  readonly #stopped = new AbortController();
  #obligations: readonly OpenObligation[] = [];
  #running: Promise<void> | null = null;
  #every: NodeJS.Timeout | null = null;
  #dirty: NodeJS.Timeout | null = null;

  constructor(fetch: FetchObligations, onError: (message: string) => void) {
    this.#fetch = fetch;
    this.#onError = onError;
  }

  /** Refreshes now and periodically until `stop`. */
  start(): void {
    if (this.#every || this.#stopped.signal.aborted) return;
    this.#every = setInterval(() => void this.refresh(), EVERY_MS).unref();
    void this.refresh();
  }

  /** A new list of frozen entries. Never throws or waits. */
  get(): OpenObligation[] {
    return this.#obligations.slice();
  }

  /** Joins a running request. Never rejects. */
  refresh(): Promise<void> {
    this.#running ??= this.#refresh().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  /** Schedules a refresh; calls within the delay share it. */
  markDirty(): void {
    if (this.#dirty || this.#stopped.signal.aborted) return;
    this.#dirty = setTimeout(async () => {
      this.#dirty = null;
      // The running request may predate the change.
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
      const answer = await withDeadline(TIMEOUT_MS, signal, this.#fetch);
      // The list itself is not frozen, because copying a frozen one is twenty times slower.
      this.#obligations = (Array.isArray(answer) ? answer : []).flatMap((item) => {
        const { data } = openObligation.safeParse(item);
        return data === undefined ? [] : [Object.freeze(data as OpenObligation)];
      });
    } catch (error) {
      if (signal.aborted) return;
      this.#onError(`could not refresh pending replies; keeping the last result: ${connectionMessage(error)}`);
    }
  }
}

/** @throws Error unless the response is successful */
export async function fetchObligations(endpoint: Endpoint, agentId: string, signal: AbortSignal): Promise<unknown> {
  const path = `/agents/${encodeURIComponent(agentId)}/reply-obligations`;
  const response = await requestServer(endpoint, path, { signal });
  if (response.ok) return ((await response.json()) as { obligations?: unknown }).obligations;
  await response.body?.cancel();
  throw new Error(`${path} answered ${response.status}`);
}

/** The newest of these messages whose sender, a person, waits for a reply; or null. */
function latestObligation(
  obligations: readonly OpenObligation[],
  sessionId: string,
  among: readonly string[],
): string | null {
  const ofSession = obligations.filter(
    (one) => one.sessionId === sessionId && one.from.kind === 'person' && among.includes(one.messageId),
  );
  return ofSession.sort((a, b) => b.sentAt - a.sentAt)[0]?.messageId ?? null;
}

/** Maximum number of messages remembered as read. Older ones are no longer matched to a later reply. */
const MAX_READ = 64;

/**
 * Annotates each text of an agent with the messages it answers.
 *
 * A text of the main thread answers the messages of its turn. In a turn without messages that no task started, it may
 * answer a pending message that the agent read earlier. A message still in delivery gets its own turn.
 */
export class ReplyAnnotator {
  readonly #sessionId: string;
  readonly #obligations: () => readonly OpenObligation[];
  /** Messages of ended turns, which the agent has read and may answer later. */
  readonly #read = new Map<string, true>();
  #isTaskTurn = false;

  constructor(sessionId: string, obligations: () => readonly OpenObligation[]) {
    this.#sessionId = sessionId;
    this.#obligations = obligations;
  }

  /** @param open open work before the events */
  mark(events: readonly TimedEvent[], open: OpenWork): TimedEvent[] {
    const session = new OpenSession(open);
    return events.map((one) => {
      session.take(one.event);
      const { type, metadata } = one.event;
      if (type === 'RUN_STARTED') this.#isTaskTurn = metadata?.interlude?.trigger?.kind === 'task';
      return this.#marked(one, session.work);
    });
  }

  /** Called when turns that answer these messages have ended. */
  answered(messageIds: readonly string[]): void {
    for (const id of messageIds) setBounded(this.#read, id, true, MAX_READ);
  }

  #marked(one: TimedEvent, open: OpenWork): TimedEvent {
    const { event } = one;
    if (event.type !== 'TEXT_MESSAGE_START' || event.role !== 'assistant' || event.subagentRunId !== undefined)
      return one;
    if (event.metadata?.interlude?.replyTo !== undefined) return one;
    const messageIds = open.turn?.userMessageIds ?? [];
    const mayAnswer = messageIds.length === 0 && open.turn !== null && !this.#isTaskTurn;
    const answered = mayAnswer ? latestObligation(this.#obligations(), this.#sessionId, [...this.#read.keys()]) : null;
    const replyTo = answered === null ? messageIds : [answered];
    if (replyTo.length === 0) return one;
    const interlude = { ...event.metadata?.interlude, replyTo };
    return { ...one, event: { ...event, metadata: { ...event.metadata, interlude } } };
  }
}

/** Messages answered by turns that end in these events. */
export function answeredMessageIds(events: readonly TimedEvent[]): string[] {
  return events.flatMap(({ event }) =>
    event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR'
      ? (event.metadata?.interlude?.userMessageIds ?? [])
      : [],
  );
}
