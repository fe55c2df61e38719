import { endsOf, isNothing } from '@interlude/protocol/lifecycle/open-session';
import type { CodexAdapter } from '../../adapters/codex/codex-adapter';
import type { ThreadPlace } from '../../adapters/codex/thread';
import type { SourceContext } from '../../host/source';
import type { Cursor } from '../../outbox/statements';

/** A thread, as the next process has to know it. */
export interface StoredThread {
  sessionId: string;
  parentThreadId: string | null;
  place: ThreadPlace | null;
  /** When anything was last told of it, epoch milliseconds. */
  at: number;
}

const PREFIX = 'codex-thread:';
/** Most threads that are remembered; those that were quiet longest are forgotten. */
const MAX_THREADS = 500;

/** Which session each thread is, and how far it has been told. */
export class ThreadStore {
  readonly #threads: Map<string, StoredThread>;
  /** As of which change of its place a thread was stored last. */
  readonly #stored = new Map<string, number>();

  /** What processes before this one have stored. */
  static async read(outbox: Pick<SourceContext, 'cursors'>): Promise<Map<string, StoredThread>> {
    const stored = [...(await outbox.cursors(PREFIX))];
    return new Map(stored.map(([name, value]) => [name.slice(PREFIX.length), JSON.parse(value) as StoredThread]));
  }

  static async recall(context: SourceContext): Promise<ThreadStore> {
    const stored = [...(await ThreadStore.read(context))];
    stored.sort(([, a], [, b]) => b.at - a.at);
    for (const [id, { sessionId }] of stored.slice(MAX_THREADS)) {
      await context.emit(sessionId, [], [{ name: PREFIX + id, value: null }]);
    }
    return new ThreadStore(new Map(stored.slice(0, MAX_THREADS)));
  }

  private constructor(threads: Map<string, StoredThread>) {
    this.#threads = threads;
  }

  /** By thread, those that were heard of last first. */
  get all(): ReadonlyMap<string, StoredThread> {
    return this.#threads;
  }

  sessionOf(threadId: string): string {
    return this.#threads.get(threadId)?.sessionId ?? threadId;
  }

  threadOf(sessionId: string): string | null {
    const [found] = [...this.#threads].find(([, one]) => one.sessionId === sessionId && !one.parentThreadId) ?? [];
    return found ?? null;
  }

  /** A thread is a session from now on. */
  assign(threadId: string, sessionId: string, now: number): Cursor {
    const known = this.#threads.get(threadId);
    const thread = { parentThreadId: null, place: null, ...known, sessionId, at: now };
    this.#threads.set(threadId, thread);
    return { name: PREFIX + threadId, value: JSON.stringify(thread) };
  }

  /** To be stored with what has just been told of a thread. */
  placeNow(adapter: CodexAdapter, threadId: string, now: number): Cursor[] {
    const thread = adapter.thread(threadId);
    if (thread === null || this.#stored.get(threadId) === thread.revision) return [];
    this.#stored.set(threadId, thread.revision);
    const { parent, place, writer } = thread;
    const remembered = { sessionId: writer.sessionId, parentThreadId: parent?.id ?? null, place, at: now };
    this.#threads.set(threadId, remembered);
    return [{ name: PREFIX + threadId, value: JSON.stringify(remembered) }];
  }
}

/**
 * Closes what the process before this one had left open, but for threads that have gone on: those are taken up where
 * they stood.
 *
 * @param loaded the threads that the server has, if it is the same one
 */
export async function closeStaleWork(
  { context, adapter, threads }: { context: SourceContext; adapter: CodexAdapter; threads: ThreadStore },
  loaded: ReadonlySet<string>,
  now: number,
): Promise<void> {
  const closed = new Set<string>();
  const all = [...threads.all];
  const parentsFirst = [
    ...all.filter(([, one]) => !one.parentThreadId),
    ...all.filter(([, one]) => one.parentThreadId),
  ];
  for (const [threadId, { sessionId, parentThreadId, place }] of parentsFirst) {
    const open = context.openWork(sessionId);
    const goesOn = loaded.has(parentThreadId ?? threadId) && !closed.has(sessionId);
    if (!goesOn && !isNothing(open)) {
      closed.add(sessionId);
      await context.emit(sessionId, endsOf(open, sessionId, now));
    }
    if (place === null) continue;
    const before = {
      ...{ place, parentThreadId },
      openTurnRunId: goesOn ? (open.turn?.runId ?? null) : null,
      openTasks: goesOn ? open.tasks : [],
      openRequests: goesOn && parentThreadId === null ? open.requests : [],
    };
    const told = adapter.takeUp(threadId, before, now);
    if (told.length > 0) {
      await context.emit(
        sessionId,
        told.map(({ occurredAt, event }) => ({ occurredAt, event })),
      );
    }
  }
}
