import { endsOf, isNothing } from '@interlude/protocol/lifecycle/open-session';
import type { CodexAdapter } from '../../adapters/codex/codex-adapter';
import type { ThreadProgress } from '../../adapters/codex/thread';
import type { SourceContext } from '../../host/source';
import type { Cursor } from '../../outbox/statements';

/** Stored state of a thread. */
export interface StoredThread {
  sessionId: string;
  parentThreadId: string | null;
  place: ThreadProgress | null;
  /** Last activity, epoch milliseconds. */
  at: number;
}

const PREFIX = 'codex-thread:';
/** Threads kept; the least active are dropped. */
const MAX_THREADS = 500;

/** Maps threads to sessions, and stores the position up to which each thread was emitted. */
export class ThreadStore {
  readonly #threads: Map<string, StoredThread>;
  /** Last stored revision by thread. */
  readonly #storedRevision = new Map<string, number>();

  static async read(outbox: Pick<SourceContext, 'cursors'>): Promise<Map<string, StoredThread>> {
    const stored = [...(await outbox.cursors(PREFIX))];
    return new Map(stored.map(([name, value]) => [name.slice(PREFIX.length), JSON.parse(value) as StoredThread]));
  }

  static async restore(context: SourceContext): Promise<ThreadStore> {
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

  /** By thread, most recently active first. */
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

  assign(threadId: string, sessionId: string, now: number): Cursor {
    const known = this.#threads.get(threadId);
    const thread = { parentThreadId: null, place: null, ...known, sessionId, at: now };
    this.#threads.set(threadId, thread);
    return { name: PREFIX + threadId, value: JSON.stringify(thread) };
  }

  /** Cursor to store with emitted events of a thread. */
  positionCursor(adapter: CodexAdapter, threadId: string, now: number): Cursor[] {
    const thread = adapter.thread(threadId);
    if (thread === null || this.#storedRevision.get(threadId) === thread.revision) return [];
    this.#storedRevision.set(threadId, thread.revision);
    const { parent, progress: place, writer } = thread;
    const remembered = { sessionId: writer.sessionId, parentThreadId: parent?.id ?? null, place, at: now };
    this.#threads.set(threadId, remembered);
    return [{ name: PREFIX + threadId, value: JSON.stringify(remembered) }];
  }
}

/**
 * Closes work left open by the previous process, except for threads that still run, which continue from their position.
 * @param loaded threads of the server, if it is the same one
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
    const isRunning = loaded.has(parentThreadId ?? threadId) && !closed.has(sessionId);
    if (!isRunning && !isNothing(open)) {
      closed.add(sessionId);
      await context.emit(sessionId, endsOf(open, sessionId, now));
    }
    if (place === null) continue;
    const before = {
      ...{ progress: place, parentThreadId },
      openTurnRunId: isRunning ? (open.turn?.runId ?? null) : null,
      openTasks: isRunning ? open.tasks : [],
      openRequests: isRunning && parentThreadId === null ? open.requests : [],
    };
    const events = adapter.restore(threadId, before, now);
    if (events.length > 0) {
      await context.emit(
        sessionId,
        events.map(({ occurredAt, event }) => ({ occurredAt, event })),
      );
    }
  }
}
