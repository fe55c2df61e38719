import type { FileEdit } from '@interlude/protocol/ag-ui';
import { fieldsOf, listOf, textOf } from '@interlude/protocol/fields';

/**
 * What a `fileChange` item changes. A new or deleted file comes with its content, a changed one with the hunks of a
 * unified diff: each of them is an edit.
 */
export function editsOf(changes: unknown): FileEdit[] {
  return listOf(changes).flatMap((told) => {
    const change = fieldsOf(told);
    const path = textOf(change.path);
    const diff = textOf(change.diff) ?? '';
    if (path === null) return [];
    const { type, move_path: to } = fieldsOf(change.kind);
    if (type === 'add') return [{ path, before: '', after: diff }];
    if (type === 'delete') return [{ path, before: diff, after: '' }];
    return hunksOf(diff).map((hunk) => ({ path: textOf(to) ?? path, ...hunk }));
  });
}

/** The changes as text: what was done to which file, and its diff. */
export function changesText(changes: unknown): string {
  return listOf(changes)
    .map((told) => {
      const { path, kind, diff } = fieldsOf(told);
      return `${textOf(fieldsOf(kind).type) ?? 'change'} ${textOf(path) ?? ''}\n${textOf(diff) ?? ''}`.trimEnd();
    })
    .join('\n\n');
}

function hunksOf(diff: string): { before: string; after: string }[] {
  const hunks: { before: string[]; after: string[] }[] = [];
  for (const line of diff.split('\n')) {
    if (line.startsWith('@@')) hunks.push({ before: [], after: [] });
    const hunk = hunks.at(-1);
    if (hunk === undefined || line.startsWith('@@')) continue;
    const text = line.slice(1);
    if (line.startsWith('-')) hunk.before.push(text);
    else if (line.startsWith('+')) hunk.after.push(text);
    else if (line.startsWith(' ')) {
      hunk.before.push(text);
      hunk.after.push(text);
    }
  }
  return hunks.map(({ before, after }) => ({ before: linesOf(before), after: linesOf(after) }));
}

function linesOf(lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}
