import type { Task, Turn } from '@interlude/protocol/read-models';
import { toPlainText } from '@/components/ui/plain-text';
import { inQuotes, quoted } from '@/components/ui/verbatim';
import type { TranscriptSlots } from './transcript-slots';

/** A task of another session: the agent was notified about it but not woken by it. */
export interface ForeignTask {
  id: string;
  sessionId: string;
}

/** The cause of a turn that no person started. */
export type TurnCause =
  | {
      kind: 'tasks';
      tasks: { id: string; task: Task | null }[];
      foreign: ForeignTask[];
      /** Agents don't report the end of such tasks: Interlude started the turn. */
      byInterlude: boolean;
    }
  | { kind: 'timer'; reason: string | null; setAt: number | null }
  | { kind: 'other'; words: string };

export function causeOf(turn: Turn, slots: Pick<TranscriptSlots, 'findTask'>): TurnCause {
  const trigger = turn.trigger;
  if (trigger?.kind === 'task' && trigger.taskIds.length > 0) {
    const tasks = trigger.taskIds.map((id, index) => ({
      id,
      at: index,
      sessionId: trigger.ofSessionIds?.[index] ?? null,
    }));
    return {
      kind: 'tasks',
      byInterlude: trigger.wokenBy === 'interlude',
      tasks: tasks
        .filter(({ sessionId }) => sessionId === null)
        .map(({ id, at }) => ({
          id,
          task: slots.findTask({ id, runId: trigger.taskRunIds?.[at] ?? null, position: turn.position }),
        })),
      foreign: tasks.flatMap(({ id, sessionId }) => (sessionId === null ? [] : [{ id, sessionId }])),
    };
  }
  if (trigger?.wokenBy === 'interlude') return { kind: 'other', words: 'Interlude' };
  if (trigger?.kind === 'task') return { kind: 'other', words: 'a task' };
  if (trigger?.kind === 'timer') return { kind: 'timer', reason: trigger.reason ?? null, setAt: trigger.setAt ?? null };
  if (trigger?.kind === 'goal') return { kind: 'other', words: 'its goal' };
  if (trigger?.kind === 'agent') return { kind: 'other', words: 'another agent' };
  return { kind: 'other', words: 'an unknown cause' };
}

/** Maximum number of causes named. Further causes are only counted. */
const MAX_NAMED = 5;

/**
 * A turn's accessible name: `Between-run turn: woken by Poll (failed, exit 3)`. Task names need no quotes here: the
 * name starts with our words and labels a region.
 */
export function turnName(turn: Turn, slots: Pick<TranscriptSlots, 'findTask' | 'outcomeOf'>): string {
  if (turn.kind === 'user') return 'User turn';
  if (turn.kind === 'none') return 'Outside any turn';
  const cause = causeOf(turn, slots);
  if (cause.kind === 'other') return `Between-run turn: woken by ${cause.words}`;
  if (cause.kind === 'timer')
    return `Between-run turn: woken by a timer${cause.reason === null ? '' : `: ${quoted(cause.reason)}`}`;
  const named = cause.tasks
    .slice(0, MAX_NAMED)
    .map(({ id, task }) => (task === null ? `task ${id}` : `${task.description} (${slots.outcomeOf(task)})`));
  const more = cause.tasks.length - named.length;
  const by = cause.byInterlude ? 'woken by Interlude for' : 'woken by';
  const woken = named.length > 0 ? [`${by} ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`] : [];
  const [first, ...others] = cause.foreign;
  const notified =
    first === undefined
      ? []
      : [
          `notified about ${others.length > 0 ? `${cause.foreign.length} tasks` : 'a task'} in ${sessionText(cause.foreign)}`,
        ];
  return `Between-run turn: ${[...woken, ...notified].join(', ')}`;
}

/** `session b`, or `other sessions`. */
function sessionText(tasks: readonly ForeignTask[]): string {
  const [only, ...others] = new Set(tasks.map(({ sessionId }) => sessionId));
  return others.length > 0 ? 'other sessions' : `session ${quoted(only ?? '')}`;
}

const MAX_CHARACTERS = 48;

/** A turn's name with the user's first words: `User turn “Build it”`. */
export function turnTitle(turn: Turn, slots: Pick<TranscriptSlots, 'findTask' | 'outcomeOf'>): string {
  const name = turnName(turn, slots);
  if (turn.kind !== 'user') return name;
  const prompt = turn.items.find((item) => item.kind === 'message' && item.role === 'user');
  const line = prompt?.kind === 'message' ? toPlainText(prompt.text) : '';
  if (!line) return name;
  const characters = [...line];
  const short = characters.length > MAX_CHARACTERS ? `${characters.slice(0, MAX_CHARACTERS).join('').trim()}…` : line;
  return `${name} ${inQuotes(short)}`;
}
