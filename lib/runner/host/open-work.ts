import { CUSTOM, type TimedEvent } from '@/lib/protocol/ag-ui';
import type { Cursor } from '@/lib/runner/outbox/statements';

/**
 * What is open in a session, derived only from the events its source gave. Stored with them, so that after a kill the
 * next runner can say how it all ended.
 */
export interface OpenWork {
  turn: { runId: string; userMessageIds: string[] } | null;
  tasks: { id: string; runId: string | null; description: string }[];
  requests: string[];
}

export const NOTHING_OPEN: OpenWork = { turn: null, tasks: [], requests: [] };

/** @returns the same object if nothing changed */
export function foldOpenWork(open: OpenWork, { event }: TimedEvent): OpenWork {
  const ids = event.metadata?.interlude?.userMessageIds ?? [];
  if (event.type === 'RUN_STARTED') return { ...open, turn: { runId: String(event.runId), userMessageIds: ids } };
  if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') return { ...open, turn: null };
  if (event.type !== 'CUSTOM') return open;
  const value = (event.value ?? {}) as Record<string, unknown>;
  const runId = typeof value.run_id === 'string' ? value.run_id : null;
  const isTask = (task: OpenWork['tasks'][number]) =>
    task.id === value.task_id && (runId === null || task.runId === null || task.runId === runId);
  switch (event.name) {
    case CUSTOM.taskStarted: {
      const task = { id: String(value.task_id), runId, description: String(value.description ?? value.task_id) };
      return { ...open, tasks: [...open.tasks.filter((known) => !isTask(known)), task] };
    }
    case CUSTOM.taskCompleted:
      return { ...open, tasks: open.tasks.filter((task) => !isTask(task)) };
    case CUSTOM.requestOpened:
      // Told again, it waits for another time, or is answered elsewhere.
      if (open.requests.includes(String(value.request_id))) return open;
      return { ...open, requests: [...open.requests, String(value.request_id)] };
    case CUSTOM.requestResolved:
      return { ...open, requests: open.requests.filter((id) => id !== value.request_id) };
    case CUSTOM.sessionEnded:
      return NOTHING_OPEN;
    default:
      return open;
  }
}

/** How open work ends if the runner that knew of it is gone. */
export function endsOf(open: OpenWork, sessionId: string, occurredAt: number): TimedEvent[] {
  const say = (event: TimedEvent['event']): TimedEvent => ({ occurredAt, event });
  return [
    ...open.requests.map((id) =>
      say({ type: 'CUSTOM', name: CUSTOM.requestResolved, value: { request_id: id, outcome: 'cancelled' } }),
    ),
    ...(open.turn === null
      ? []
      : [
          say({
            type: 'RUN_ERROR',
            threadId: sessionId,
            runId: open.turn.runId,
            message: 'The runner ended in the middle of this turn.',
            code: 'runner_exited',
          }),
        ]),
    ...open.tasks.map(({ id, runId }) =>
      say({
        type: 'CUSTOM',
        name: CUSTOM.taskCompleted,
        value: {
          task_id: id,
          ...(runId === null ? {} : { run_id: runId }),
          status: 'lost',
          error: 'The runner ended while this ran, and nothing told how it ended.',
        },
      }),
    ),
  ];
}

const CURSOR = 'open-work:';

/** Stored with the events that made it so. */
export function openWorkCursor(sessionId: string, open: OpenWork): Cursor {
  return { name: CURSOR + sessionId, value: isNothing(open) ? null : JSON.stringify(open) };
}

/** By session: what the processes before this one left open. */
export async function readOpenWork(outbox: {
  cursors: (prefix: string) => Promise<Map<string, string>>;
}): Promise<Map<string, OpenWork>> {
  const stored = await outbox.cursors(CURSOR);
  return new Map([...stored].map(([name, value]) => [name.slice(CURSOR.length), JSON.parse(value) as OpenWork]));
}

export function isNothing({ turn, tasks, requests }: OpenWork): boolean {
  return turn === null && tasks.length === 0 && requests.length === 0;
}
