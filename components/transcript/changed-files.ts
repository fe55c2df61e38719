import type { ToolCallItem } from '@interlude/protocol/read-models';
import { type Edits, type EditsDiff, editsOf } from './edits';

/** The file changes that the agent reported with the result. */
export function changesOf({ edits }: Pick<ToolCallItem, 'edits'>): Edits | null {
  if (edits === undefined) return null;
  return known.get(edits) ?? withCache(edits);
}

/** A call keeps its identity until it changes. */
const known = new WeakMap<object, Edits>();

function withCache(edits: NonNullable<ToolCallItem['edits']>): Edits {
  const changes = { edits: edits.map((edit) => ({ ...edit, everywhere: false })), isWhole: false, rest: {} };
  known.set(edits, changes);
  return changes;
}

/** The edits counted on a call's line: reported changes, or else the requested edits. */
export function countedEdits(call: Pick<ToolCallItem, 'name' | 'args' | 'edits'>): { edits: Edits; of: object } | null {
  const changes = changesOf(call);
  if (changes !== null) return { edits: changes, of: call.edits as object };
  const requested = editsOf(call);
  return requested === null ? null : { edits: requested, of: call.args as object };
}

/** Consecutive changes of one file. */
export interface ChangedFile {
  path: string;
  edits: Edits;
  diff: EditsDiff;
}

/**
 * A call's reported changes by file; empty if they equal the requested edits.
 *
 * @param diff of `changes`
 */
export function changedFiles(
  call: Pick<ToolCallItem, 'name' | 'args' | 'edits'>,
  changes: Edits,
  diff: EditsDiff,
): ChangedFile[] {
  const requested = editsOf(call)?.edits ?? [];
  const isRequested = changes.edits.every(({ before, after }) =>
    requested.some((edit) => edit.before === before && edit.after === after),
  );
  if (isRequested) return [];
  const files: ChangedFile[] = [];
  for (const [at, { path }] of (call.edits ?? []).entries()) {
    const last = files.at(-1);
    const from = last?.path === path ? at - last.edits.edits.length : at;
    if (from < at) files.pop();
    const edits = changes.edits.slice(from, at + 1);
    const chunks = diff.chunks.slice(from, at + 1);
    // A new file is shown as written, without a previous text to copy.
    const isWhole = edits.length === 1 && edits[0]?.before === '';
    files.push({ path, edits: { edits, isWhole, rest: {} }, diff: { chunks, added: 0, removed: 0 } });
  }
  return files;
}
