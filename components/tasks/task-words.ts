import type { Task } from '@interlude/protocol/read-models';
import { truncateText } from '@interlude/protocol/text';

/** `failed, exit 3`. An exit code of 0 says no more than "completed" does. */
export function taskOutcome(task: Pick<Task, 'status' | 'exitCode' | 'presumed'>): string {
  if (task.presumed === 'unheard') return 'not heard of';
  const exit = task.exitCode !== null && task.exitCode !== 0 ? `, exit ${task.exitCode}` : '';
  return `${task.status}${exit}`;
}

/** A task that was given no name goes by its id. */
export function namedTask(task: Task): Task {
  const known = named.get(task);
  if (known !== undefined) return known;
  const description = truncateText(task.description, MOST_DESCRIPTION).trim() === '' ? task.id : task.description;
  const result = description === task.description ? task : { ...task, description };
  named.set(task, result);
  return result;
}

const MOST_DESCRIPTION = 1_000;
/** A session may have thousands of tasks, of which one changes. */
const named = new WeakMap<Task, Task>();

/** Where a task's card stands in the page. */
export function taskAnchor(task: Pick<Task, 'position'>): string {
  return `task-${task.position}`;
}

/** Whether the summary only repeats name, status and exit code, as Claude Code's does for every shell command. */
export function isBoilerplate(task: Pick<Task, 'summary'>): boolean {
  return /^Background command ".*" (?:completed|failed|was stopped|stopped)\b.{0,40}$/s.test(
    task.summary?.startsWith('Background command') ? task.summary : '',
  );
}
