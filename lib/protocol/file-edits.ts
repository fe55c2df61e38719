import type { FileEdit } from './ag-ui';
import { cutText } from './cut-text';
import { isObject, listOf } from './fields';
import { MAX_CAPTION, MAX_EDITS, MAX_ITEM_TEXT } from './limits';

/**
 * What a call changed in files, as far as it can be shown: at most MAX_EDITS changes with MAX_ITEM_TEXT of text
 * together. One that is not as described, or that there is no room for, is left out.
 */
export function fileEdits(said: unknown): FileEdit[] {
  const edits: FileEdit[] = [];
  let room = MAX_ITEM_TEXT;
  for (const told of listOf(said)) {
    if (edits.length === MAX_EDITS) break;
    const edit = editOf(told);
    if (edit === null || lengthOfEdit(edit) > room) continue;
    room -= lengthOfEdit(edit);
    edits.push(edit);
  }
  return edits;
}

/** In UTF-16 code units. */
export function lengthOfEdit({ path, before, after }: FileEdit): number {
  return path.length + before.length + after.length;
}

function editOf(told: unknown): FileEdit | null {
  if (!isObject(told)) return null;
  const { path, before, after } = told;
  if (typeof path !== 'string' || typeof before !== 'string' || typeof after !== 'string') return null;
  return { path: cutText(path, MAX_CAPTION), before, after };
}
