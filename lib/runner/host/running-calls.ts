import type { AgUiEvent, TimedEvent } from '@/lib/protocol/ag-ui';
import { CUSTOM } from '@/lib/protocol/ag-ui';
import { fieldsOf } from '@/lib/protocol/fields';

/** A tool call that has no result yet, as its session's events show it. */
export interface RunningCall {
  id: string;
  /** In the agent's words: `mcp__interlude__reply`, `report_status (interlude MCP Server)`. */
  name: string;
  /** JSON, as far as it has been said. */
  args: string;
  /** The run of the subagent that makes it; null for the session's own agent. */
  subagentRunId: string | null;
}

/** Most calls of one session that are remembered. */
const MOST_CALLS = 128;

/**
 * The tool calls under way in each session, folded from the events on their way out. They prove which session makes a
 * call where one process serves many sessions.
 *
 * Failure: kept in memory only. A runner that starts in the middle of a call does not know it, and the call is refused.
 */
export class RunningCalls {
  readonly #bySession = new Map<string, Map<string, RunningCall>>();
  readonly #waiting = new Set<() => void>();

  in(sessionId: string): RunningCall[] {
    return [...(this.#bySession.get(sessionId)?.values() ?? [])];
  }

  saw(sessionId: string, events: readonly TimedEvent[]): void {
    const calls = this.#bySession.get(sessionId) ?? new Map<string, RunningCall>();
    for (const { event } of events) fold(calls, event);
    if (calls.size > 0) this.#bySession.set(sessionId, calls);
    else this.#bySession.delete(sessionId);
    for (const look of [...this.#waiting]) look();
  }

  /** Calls `find` now and after each event, until it gives something or the time is over. */
  async until<T>(find: () => T | null, withinMs: number): Promise<T | null> {
    const first = find();
    if (first !== null) return first;
    return await new Promise((resolve) => {
      const look = () => {
        const found = find();
        if (found !== null) end(found);
      };
      const end = (found: T | null) => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve(found);
      };
      const timer = setTimeout(() => end(null), withinMs);
      this.#waiting.add(look);
    });
  }
}

function fold(calls: Map<string, RunningCall>, event: AgUiEvent): void {
  const id = String(event.toolCallId);
  const call = calls.get(id);
  switch (event.type) {
    case 'TOOL_CALL_START': {
      const subagentRunId = event.subagentRunId === undefined ? null : String(event.subagentRunId);
      calls.set(id, { id, name: String(event.toolCallName), args: '', subagentRunId });
      const [oldest] = calls.keys();
      if (calls.size > MOST_CALLS && oldest !== undefined) calls.delete(oldest);
      return;
    }
    case 'TOOL_CALL_ARGS':
      if (call !== undefined) {
        call.args = (event.metadata?.interlude?.whole === true ? '' : call.args) + String(event.delta ?? '');
      }
      return;
    case 'TOOL_CALL_RESULT':
      calls.delete(id);
      return;
    case 'RUN_STARTED':
    case 'RUN_FINISHED':
    case 'RUN_ERROR':
      remove(calls, ({ subagentRunId }) => subagentRunId === null);
      return;
    case 'CUSTOM': {
      const { run_id, task_id } = fieldsOf(event.value);
      if (event.name === CUSTOM.sessionEnded) calls.clear();
      if (event.name !== CUSTOM.taskCompleted) return;
      remove(calls, ({ subagentRunId: by }) => by !== null && (by === run_id || by === task_id));
    }
  }
}

function remove(calls: Map<string, RunningCall>, isOver: (call: RunningCall) => boolean): void {
  for (const call of calls.values()) if (isOver(call)) calls.delete(call.id);
}
