import type { AgUiEvent, InterludeMetadata } from '@interlude/protocol/ag-ui';
import type { Item, Turn } from '@interlude/protocol/read-models';
import { MemoryLog } from '../../support/memory-log';

/** Builders for a session's history in tests. */

export const says = (id: string, text: string, role = 'assistant', more: Partial<AgUiEvent> = {}): AgUiEvent[] => [
  { type: 'TEXT_MESSAGE_START', messageId: id, role, ...more },
  { type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta: text, ...more },
  { type: 'TEXT_MESSAGE_END', messageId: id, ...more },
];
export const userSays = (id: string, text: string) => says(id, text, 'user');
export const runStarts = (runId: string, interlude: InterludeMetadata = {}): AgUiEvent[] => [
  { type: 'RUN_STARTED', threadId: 's1', runId, metadata: { interlude } },
];
export const runEnds = (runId: string, interlude: InterludeMetadata = {}): AgUiEvent[] => [
  { type: 'RUN_FINISHED', threadId: 's1', runId, metadata: { interlude } },
];
export const custom = (name: string, value: Record<string, unknown>): AgUiEvent[] => [{ type: 'CUSTOM', name, value }];
export const taskStarts = (task_id: string, more = {}) =>
  custom('task:started', { task_id, description: `Poll ${task_id}`, task_type: 'local_bash', ...more });
export const taskEnds = (task_id: string, status: string, more = {}) =>
  custom('task:completed', { task_id, status, ...more });
export const wokenBy = (...taskIds: string[]): InterludeMetadata => ({
  turn: 'between-run',
  trigger: { kind: 'task', taskIds },
});

export function told(...chapters: AgUiEvent[][]): MemoryLog {
  const log = new MemoryLog();
  for (const chapter of chapters) log.append(chapter);
  return log;
}

/** A turn as one line per item. */
export function seen(turn: Turn | undefined): string[] {
  return (turn?.items ?? []).map(line);
}

function line(item: Item): string {
  switch (item.kind) {
    case 'message':
      return `${item.role}: ${item.text}`;
    case 'reasoning':
      return `thinks: ${item.text}`;
    case 'tool-call':
      return `${item.name} ${item.status}: ${item.result}`;
    case 'task':
      return `task ${item.id} ${item.phase}`;
    case 'request':
      return `asks: ${item.title} -> ${item.outcome}`;
    case 'plan':
      return `plan: ${item.entries.map(({ content, status }) => `${content} (${status})`).join(', ')}`;
    case 'notice':
      return `notice: ${item.text}`;
  }
}

export function turnsOf(log: MemoryLog): Record<string, string[]> {
  return Object.fromEntries(log.page().turns.map((turn) => [`${turn.kind} ${turn.id} ${turn.state}`, seen(turn)]));
}
