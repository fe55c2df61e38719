import type { Task, Turn } from '@/lib/protocol/read-models';
import type { TranscriptSlots } from './transcript-slots';

/** What woke the agent: tasks by name, or something without one. */
export type TurnCause =
  | { kind: 'tasks'; tasks: { id: string; task: Task | null }[] }
  | { kind: 'other'; words: string };

export function causeOf(turn: Turn, slots: Pick<TranscriptSlots, 'findTask'>): TurnCause {
  const trigger = turn.trigger;
  if (trigger?.kind === 'task' && trigger.taskIds.length > 0) {
    return {
      kind: 'tasks',
      tasks: trigger.taskIds.map((id, at) => ({
        id,
        task: slots.findTask({ id, runId: trigger.taskRunIds?.[at] ?? null, position: turn.position }),
      })),
    };
  }
  if (trigger?.kind === 'task') return { kind: 'other', words: 'a task' };
  if (trigger?.kind === 'timer') return { kind: 'other', words: 'a timer' };
  if (trigger?.kind === 'agent') return { kind: 'other', words: 'another agent' };
  return { kind: 'other', words: 'something it did not name' };
}

/** More causes than these are counted. */
const MOST_NAMED = 5;

/** A turn's accessible name: `Between-run turn: woken by Poll (failed, exit 3)`. */
export function turnName(turn: Turn, slots: Pick<TranscriptSlots, 'findTask' | 'outcomeOf'>): string {
  if (turn.kind === 'user') return 'User turn';
  if (turn.kind === 'none') return 'Outside any turn';
  const cause = causeOf(turn, slots);
  if (cause.kind === 'other') return `Between-run turn: woken by ${cause.words}`;
  const named = cause.tasks
    .slice(0, MOST_NAMED)
    .map(({ id, task }) => (task === null ? `task ${id}` : `${task.description} (${slots.outcomeOf(task)})`));
  const more = cause.tasks.length - named.length;
  return `Between-run turn: woken by ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
