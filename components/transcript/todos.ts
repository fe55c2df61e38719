import type { PlanEntry } from '@interlude/protocol/ag-ui';
import type { ToolCallItem } from '@interlude/protocol/read-models';

const STATES = ['pending', 'in_progress', 'completed'] as const;

export interface Todo {
  text: string;
  state: (typeof STATES)[number];
  /** What it is called while it is being done, where that is said in other words. */
  activeText: string | null;
}

export interface Todos {
  todos: readonly Todo[];
  doneCount: number;
  /** What else the call was given. */
  rest: Record<string, unknown>;
}

/** @returns null if it is no list of things to do, or says more of one than a checklist shows */
export function todosOf({ name, args }: Pick<ToolCallItem, 'name' | 'args'>): Todos | null {
  if (name !== 'TodoWrite' || typeof args !== 'object' || args === null) return null;
  const { todos: list, ...rest } = args as Record<string, unknown>;
  if (!Array.isArray(list)) return null;
  const todos: Todo[] = [];
  for (const told of list) {
    const todo = todoOf(told);
    if (todo === null) return null;
    todos.push(todo);
  }
  return { todos, doneCount: todos.filter(({ state }) => state === 'completed').length, rest };
}

function todoOf(told: unknown): Todo | null {
  if (typeof told !== 'object' || told === null) return null;
  const { content, status, activeForm, ...more } = told as Record<string, unknown>;
  const state = STATES.find((known) => known === status);
  if (typeof content !== 'string' || state === undefined || Object.keys(more).length > 0) return null;
  if (activeForm !== undefined && typeof activeForm !== 'string') return null;
  return { text: content, state, activeText: activeForm === undefined || activeForm === content ? null : activeForm };
}

/** A plan, which says what it says in the same words. */
export function todosOfPlan(entries: readonly PlanEntry[]): Pick<Todos, 'todos' | 'doneCount'> {
  const todos = entries.map(({ content, status }) => ({ text: content, state: status, activeText: null }));
  return { todos, doneCount: todos.filter(({ state }) => state === 'completed').length };
}

/** `3 of 7 done: Running the tests` */
export function todosInWords({ todos, doneCount }: Pick<Todos, 'todos' | 'doneCount'>): string {
  const current = todos.find(({ state }) => state === 'in_progress');
  const count = `${doneCount} of ${todos.length} done`;
  return current === undefined ? count : `${count}: ${current.activeText ?? current.text}`;
}
