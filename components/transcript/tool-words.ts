import type { FileEdit } from '@interlude/protocol/ag-ui';
import type { ToolCallItem } from '@interlude/protocol/read-models';
import { truncateText } from '@interlude/protocol/text';
import { todosInWords, todosOf } from './todos';

/** One line is made of this much; nobody sees what is beyond. */
const LOOKED_AT = 2_000;

/** The argument that tells most about a call, by what agents call it, most telling first. */
const TELLING = [
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
 * One line about a call: the command, the file, the pattern. While the arguments still stream, what has come of it.
 *
 * @param except an argument that is told elsewhere already
 * @returns '' when nothing tells
 */
export function tellingArgument(
  call: Pick<ToolCallItem, 'name' | 'args' | 'argsText' | 'edits'>,
  except?: string,
): string {
  const todos = todosOf(call);
  if (todos !== null) return oneLine(todosInWords(todos));
  if (typeof call.args === 'string') return oneLine(call.args);
  if (typeof call.args !== 'object' || call.args === null) return tellingPart(call.argsText.slice(0, LOOKED_AT));
  const args = call.args as Record<string, unknown>;
  for (const name of TELLING) {
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

function tellingPart(argsText: string): string {
  for (const name of TELLING) {
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
  // Its lines run on; that they are several is still said.
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
