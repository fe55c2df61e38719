import { isObject } from '@interlude/protocol/fields';
import type { ToolCallItem } from '@interlude/protocol/read-models';
import { countLines } from '@/components/ui/format-size';
import { type DiffChunk, lineDiff, MAX_CHANGED } from './line-diff';

/** One replacement in a file. */
export interface Edit {
  before: string;
  after: string;
  /** True to replace every occurrence. */
  everywhere: boolean;
}

/** The edits of one tool call. */
export interface Edits {
  edits: readonly Edit[];
  /** True if the edit replaces the whole file, whose previous content is unknown. */
  isWholeFile: boolean;
  /** The other arguments. */
  rest: Record<string, unknown>;
}

/** @returns null unless the call is an edit with the expected arguments */
export function editsOf({ name, args }: Pick<ToolCallItem, 'name' | 'args'>): Edits | null {
  if (!isObject(args)) return null;
  switch (name) {
    case 'Edit': {
      const { old_string: before, new_string: after, ...rest } = args;
      if (typeof before !== 'string' || typeof after !== 'string') return null;
      // `replace_all` is shown with the other arguments.
      return { edits: [{ before, after, everywhere: false }], isWholeFile: false, rest };
    }
    case 'MultiEdit': {
      const { edits: list, ...rest } = args;
      if (!Array.isArray(list) || list.length === 0) return null;
      const edits: Edit[] = [];
      for (const value of list) {
        const edit = editOf(value);
        if (edit === null) return null;
        edits.push(edit);
      }
      return { edits, isWholeFile: false, rest };
    }
    case 'Write': {
      const { content, ...rest } = args;
      if (typeof content !== 'string') return null;
      return { edits: [{ before: '', after: content, everywhere: false }], isWholeFile: true, rest };
    }
    default:
      return null;
  }
}

/** An edit in a list with unexpected fields is shown as given. */
function editOf(value: unknown): Edit | null {
  if (!isObject(value)) return null;
  const { old_string: before, new_string: after, replace_all: everywhere = false, ...more } = value;
  if (typeof before !== 'string' || typeof after !== 'string' || typeof everywhere !== 'boolean') return null;
  return Object.keys(more).length === 0 ? { before, after, everywhere } : null;
}

export interface EditsDiff {
  /** One list per edit. */
  chunks: readonly (readonly DiffChunk[])[];
  added: number;
  removed: number;
}

/** Further edits are shown as removed and added lines, without a diff. */
const MAX_LINED_UP = 200;

const known = new WeakMap<object, EditsDiff>();

/** @param args the source of `edits`: the cache key */
export function diffOf({ edits }: Edits, args: object): EditsDiff {
  const found = known.get(args) ?? compared(edits);
  known.set(args, found);
  return found;
}

function compared(edits: readonly Edit[]): EditsDiff {
  const diff = { chunks: [] as DiffChunk[][], added: 0, removed: 0 };
  // All edits together take no longer than a single worst case.
  let left = MAX_CHANGED ** 2;
  for (const [index, { before, after }] of edits.entries()) {
    const chunks = lineDiff(before, after, index < MAX_LINED_UP ? Math.floor(Math.sqrt(left)) : 0);
    const [removed, added] = [linesIn(chunks, 'removed'), linesIn(chunks, 'added')];
    left = Math.max(0, left - Math.min(MAX_CHANGED, removed + added) ** 2);
    diff.chunks.push(chunks);
    diff.removed += removed;
    diff.added += added;
  }
  return diff;
}

function linesIn(chunks: readonly DiffChunk[], kind: DiffChunk['kind']): number {
  return chunks.reduce((sum, chunk) => sum + (chunk.kind === kind ? chunk.lines : 0), 0);
}

/** Edits this small are compared during the render, on the server too. */
const SMALL = { characters: 4_000, lines: 120 };

/** The diff if it is cached or cheap; null if it should be computed in the idle queue. */
export function diffAtOnce(edits: Edits, args: object): EditsDiff | null {
  return known.has(args) || isSmall(edits) ? diffOf(edits, args) : null;
}

function isSmall({ edits }: Edits): boolean {
  let { characters, lines } = SMALL;
  for (const { before, after } of edits) {
    characters -= before.length + after.length;
    if (characters < 0) return false;
    lines -= countLines(before) + countLines(after);
    if (lines < 0) return false;
  }
  return true;
}

/** The file changes that the agent reported with the result. */
export function changesOf({ edits }: Pick<ToolCallItem, 'edits'>): Edits | null {
  if (edits === undefined) return null;
  return cachedChanges.get(edits) ?? cacheChanges(edits);
}

/** A call keeps its identity until it changes. */
const cachedChanges = new WeakMap<object, Edits>();

function cacheChanges(edits: NonNullable<ToolCallItem['edits']>): Edits {
  const changes = { edits: edits.map((edit) => ({ ...edit, everywhere: false })), isWholeFile: false, rest: {} };
  cachedChanges.set(edits, changes);
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
interface ChangedFile {
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
  for (const [index, { path }] of (call.edits ?? []).entries()) {
    const last = files.at(-1);
    const from = last?.path === path ? index - last.edits.edits.length : index;
    if (from < index) files.pop();
    const edits = changes.edits.slice(from, index + 1);
    const chunks = diff.chunks.slice(from, index + 1);
    // A new file is shown as written, without a previous text to copy.
    const isWholeFile = edits.length === 1 && edits[0]?.before === '';
    files.push({ path, edits: { edits, isWholeFile, rest: {} }, diff: { chunks, added: 0, removed: 0 } });
  }
  return files;
}
