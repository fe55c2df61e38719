import type { FileEdit, PlanEntry } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';

/** What a completed call changed in files. @see opencode-ai 1.18.33: the tools edit, write, apply_patch */
export function editsOf(tool: string, state: Fields): FileEdit[] {
  const input = fieldsOf(state.input);
  const metadata = fieldsOf(state.metadata);
  const { file } = fieldsOf(metadata.filediff);
  const path = textOf(file) ?? textOf(metadata.filepath) ?? textOf(input.filePath) ?? '';
  if (tool === 'edit' && typeof input.oldString === 'string' && typeof input.newString === 'string') {
    return [{ path, before: input.oldString, after: input.newString }];
  }
  // Of a file that was there before, nothing says what it held.
  if (tool === 'write') {
    return metadata.exists === false && typeof input.content === 'string'
      ? [{ path, before: '', after: input.content }]
      : [];
  }
  return listOf(metadata.files).flatMap((changed) => {
    const { filePath, relativePath, patch, diff } = fieldsOf(changed);
    const text = textOf(patch) ?? textOf(diff);
    return text === null ? [] : [editOfPatch(textOf(filePath) ?? textOf(relativePath) ?? '', text)];
  });
}

/** Both sides of a unified diff, as far as it shows them. */
export function editOfPatch(path: string, patch: string): FileEdit {
  const [before, after]: [string[], string[]] = [[], []];
  let isInHunk = false;
  for (const line of patch.split('\n')) {
    if (line.startsWith('@@')) isInHunk = true;
    else if (!isInHunk || line.startsWith('\\')) continue;
    else if (line.startsWith('-')) before.push(line.slice(1));
    else if (line.startsWith('+')) after.push(line.slice(1));
    else if (line.startsWith(' ')) {
      before.push(line.slice(1));
      after.push(line.slice(1));
    }
  }
  return { path, before: before.join('\n'), after: after.join('\n') };
}

const STATUSES = ['pending', 'in_progress', 'completed'] as const;
const MAX_ENTRIES = 200;

/** What `todowrite` says the agent means to do; null where it says nothing of the kind. */
export function planOf(tool: string, state: Fields): PlanEntry[] | null {
  const todos = fieldsOf(state.input).todos;
  if (tool !== 'todowrite' || !Array.isArray(todos)) return null;
  return todos.slice(0, MAX_ENTRIES).flatMap((todo) => {
    const { content, status, priority } = fieldsOf(todo);
    const known = STATUSES.find((one) => one === status);
    const text = textOf(content);
    if (text === null || known === undefined) return [];
    const urgency = textOf(priority);
    return [
      {
        content: truncateText(text, 1_000),
        status: known,
        ...(urgency === null ? {} : { priority: truncateText(urgency, 40) }),
      },
    ];
  });
}
