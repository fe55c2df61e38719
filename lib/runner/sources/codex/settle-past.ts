import { endsOf, isNothing } from '@interlude/protocol/lifecycle/open-session';
import type { CodexAdapter } from '../../adapters/codex/codex-adapter';
import type { SourceSurroundings } from '../../host/source';
import type { ThreadMemory } from './thread-memory';

/**
 * Closes what the process before this one had left open, but for threads that have gone on: those are taken up where
 * they stood.
 *
 * @param loaded the threads that the server has, if it is the same one
 */
export async function settlePast(
  { around, adapter, threads }: { around: SourceSurroundings; adapter: CodexAdapter; threads: ThreadMemory },
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
    const open = around.openWork(sessionId);
    const goesOn = loaded.has(parentThreadId ?? threadId) && !closed.has(sessionId);
    if (!goesOn && !isNothing(open)) {
      closed.add(sessionId);
      await around.emit(sessionId, endsOf(open, sessionId, now));
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
      await around.emit(
        sessionId,
        told.map(({ occurredAt, event }) => ({ occurredAt, event })),
      );
    }
  }
}
