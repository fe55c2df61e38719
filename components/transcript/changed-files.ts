import type { ToolCallItem } from '@interlude/protocol/read-models';
import { type Edits, type EditsDiff, editsOf } from './edits';

/** What a call changed, as its agent told it with the result: all of it, to be compared and counted together. */
export function changesOf({ edits }: Pick<ToolCallItem, 'edits'>): Edits | null {
  if (edits === undefined) return null;
  return known.get(edits) ?? remembered(edits);
}

/** A call is the same object until something of it changes, and so is what is read of it. */
const known = new WeakMap<object, Edits>();

function remembered(edits: NonNullable<ToolCallItem['edits']>): Edits {
  const changes = { edits: edits.map((edit) => ({ ...edit, everywhere: false })), isWhole: false, rest: {} };
  known.set(edits, changes);
  return changes;
}

/** What is counted on a call's line: what it changed, or else what it was asked to change. */
export function countedEdits(call: Pick<ToolCallItem, 'name' | 'args' | 'edits'>): { edits: Edits; of: object } | null {
  const changes = changesOf(call);
  if (changes !== null) return { edits: changes, of: call.edits as object };
  const asked = editsOf(call);
  return asked === null ? null : { edits: asked, of: call.args as object };
}

/** Changes of one file that follow one another. */
export interface ChangedFile {
  path: string;
  edits: Edits;
  diff: EditsDiff;
}

/**
 * What a call changed, file by file; none where what it was given says the same.
 *
 * @param diff of `changes`
 */
export function changedFiles(
  call: Pick<ToolCallItem, 'name' | 'args' | 'edits'>,
  changes: Edits,
  diff: EditsDiff,
): ChangedFile[] {
  const asked = editsOf(call)?.edits ?? [];
  const isAsked = changes.edits.every(({ before, after }) =>
    asked.some((edit) => edit.before === before && edit.after === after),
  );
  if (isAsked) return [];
  const files: ChangedFile[] = [];
  for (const [at, { path }] of (call.edits ?? []).entries()) {
    const last = files.at(-1);
    const from = last?.path === path ? at - last.edits.edits.length : at;
    if (from < at) files.pop();
    const edits = changes.edits.slice(from, at + 1);
    const chunks = diff.chunks.slice(from, at + 1);
    // what was not there before is shown as a file that is written, which has nothing to copy of before
    const isWhole = edits.length === 1 && edits[0]?.before === '';
    files.push({ path, edits: { edits, isWhole, rest: {} }, diff: { chunks, added: 0, removed: 0 } });
  }
  return files;
}
