import type { FileEdit, PlanEntry } from '@interlude/protocol/ag-ui';
import type { ToolCallItem } from '@interlude/protocol/read-models';
import { truncateText } from '@interlude/protocol/text';

/** Maximum number of characters examined for a line. */
const LOOKED_AT = 2_000;

/** Names that agents use for the most informative arguments, best first. */
const MAIN_ARGUMENTS = [
  'command',
  'cmd',
  'file_path',
  'filePath',
  'notebook_path',
  'pattern',
  'path',
  'query',
  'url',
  'description',
  'skill',
  'prompt',
  'task_id',
  'name',
  'subject',
  'message',
  'text',
];

/**
 * One line about a call: its command, file or pattern. Works on partial arguments while they stream.
 *
 * @param except an argument that is shown elsewhere
 * @returns '' if there is none
 */
export function mainArgument(
  call: Pick<ToolCallItem, 'name' | 'args' | 'argsText' | 'edits'>,
  except?: string,
): string {
  const todos = todosOf(call);
  if (todos !== null) return oneLine(todosText(todos));
  if (typeof call.args === 'string') return oneLine(call.args);
  if (typeof call.args !== 'object' || call.args === null) return partialArgument(call.argsText.slice(0, LOOKED_AT));
  const args = call.args as Record<string, unknown>;
  for (const name of MAIN_ARGUMENTS) {
    const value = args[name];
    if (name !== except && typeof value === 'string' && value !== '') return oneLine(value);
  }
  if (Array.isArray(args.todos)) return `${args.todos.length} items`;
  const first = Object.values(args).find((value) => typeof value === 'string' && value !== '');
  return typeof first === 'string' ? oneLine(first) : changedIn(call.edits ?? []);
}

function changedIn(edits: readonly FileEdit[]): string {
  const [path = '', ...more] = new Set(edits.map((edit) => edit.path));
  return more.length > 0 ? `${more.length + 1} files` : oneLine(path);
}

function partialArgument(argsText: string): string {
  for (const name of MAIN_ARGUMENTS) {
    const found = new RegExp(`"${name}"\\s*:\\s*"((?:[^"\\\\]|\\\\.)*)`).exec(argsText);
    if (!found?.[1]) continue;
    try {
      return oneLine(JSON.parse(`"${found[1]}"`) as string);
    } catch {
      return oneLine(found[1]);
    }
  }
  return '';
}

function oneLine(text: string): string {
  // Line breaks stay visible.
  const line = truncateText(text, LOOKED_AT)
    .trim()
    .replace(/\n[ \t]+/g, '\n');
  return line.length > 300 ? `${truncateText(line, 300)}…` : line;
}

/** `mcp__github__create_issue` → `github: create_issue`. */
export function toolName(name: string): string {
  if (!name.startsWith('mcp__')) return name;
  const end = name.indexOf('__', 'mcp__'.length + 1);
  const tool = end === -1 ? '' : name.slice(end + 2);
  return tool === '' ? name : `${name.slice('mcp__'.length, end)}: ${tool}`;
}

const STATES = ['pending', 'in_progress', 'completed'] as const;

export interface Todo {
  text: string;
  state: (typeof STATES)[number];
  /** The item's wording while in progress, if different. */
  activeText: string | null;
}

interface Todos {
  todos: readonly Todo[];
  doneCount: number;
  /** The call's other arguments. */
  rest: Record<string, unknown>;
}

/** @returns null unless the call is a to-do list that a checklist can show in full */
export function todosOf({ name, args }: Pick<ToolCallItem, 'name' | 'args'>): Todos | null {
  if (name !== 'TodoWrite' || typeof args !== 'object' || args === null) return null;
  const { todos: list, ...rest } = args as Record<string, unknown>;
  if (!Array.isArray(list)) return null;
  const todos: Todo[] = [];
  for (const value of list) {
    const todo = todoOf(value);
    if (todo === null) return null;
    todos.push(todo);
  }
  return { todos, doneCount: todos.filter(({ state }) => state === 'completed').length, rest };
}

function todoOf(value: unknown): Todo | null {
  if (typeof value !== 'object' || value === null) return null;
  const { content, status, activeForm, ...more } = value as Record<string, unknown>;
  const state = STATES.find((known) => known === status);
  if (typeof content !== 'string' || state === undefined || Object.keys(more).length > 0) return null;
  if (activeForm !== undefined && typeof activeForm !== 'string') return null;
  return { text: content, state, activeText: activeForm === undefined || activeForm === content ? null : activeForm };
}

export function todosOfPlan(entries: readonly PlanEntry[]): Pick<Todos, 'todos' | 'doneCount'> {
  const todos = entries.map(({ content, status }) => ({ text: content, state: status, activeText: null }));
  return { todos, doneCount: todos.filter(({ state }) => state === 'completed').length };
}

/** `3 of 7 done: Running the tests` */
export function todosText({ todos, doneCount }: Pick<Todos, 'todos' | 'doneCount'>): string {
  const current = todos.find(({ state }) => state === 'in_progress');
  const count = `${doneCount} of ${todos.length} done`;
  return current === undefined ? count : `${count}: ${current.activeText ?? current.text}`;
}
