import type { Task } from '@interlude/protocol/read-models';
import { truncateText } from '@interlude/protocol/text';

/** `failed, exit 3`. Exit code 0 is not shown. */
export function taskOutcome(task: Pick<Task, 'status' | 'exitCode' | 'presumed'>): string {
  if (task.presumed === 'unheard') return 'no signal';
  const exit = task.exitCode !== null && task.exitCode !== 0 ? `, exit ${task.exitCode}` : '';
  return `${task.status}${exit}`;
}

/** The task, with its id as the description if it has none. */
export function namedTask(task: Task): Task {
  const known = named.get(task);
  if (known !== undefined) return known;
  const description = truncateText(task.description, MAX_DESCRIPTION).trim() === '' ? task.id : task.description;
  const result = description === task.description ? task : { ...task, description };
  named.set(task, result);
  return result;
}

const MAX_DESCRIPTION = 1_000;
/** Cached, because most tasks of a session stay unchanged. */
const named = new WeakMap<Task, Task>();

/** Class names for a task's description: the code font for shell tasks, which are described by their command. */
export function taskFont({ kind }: Pick<Task, 'kind'>): string | false {
  return kind === 'shell' && 'font-mono text-xs';
}

export function taskAnchor(task: Pick<Task, 'position'>): string {
  return `task-${task.position}`;
}

/** True if the summary only repeats name, status and exit code, as Claude Code's does for every shell command. */
export function isBoilerplate(task: Pick<Task, 'summary'>): boolean {
  return /^Background command ".*" (?:completed|failed|was stopped|stopped)\b.{0,40}$/s.test(
    task.summary?.startsWith('Background command') ? task.summary : '',
  );
}

/** The last two parts of a path. */
export function shortPath(path: string): string {
  const parts = path.split('/');
  return parts.length > 3 ? `…/${parts.slice(-2).join('/')}` : path;
}
