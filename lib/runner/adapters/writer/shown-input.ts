import type { RequestOption } from '@interlude/protocol/ag-ui';
import { jsonBytes } from './long-text';

/** As JSON. A larger or deeper input does not fit into a record, and no person could read it. */
const MAX_BYTES = 512 * 1024;
const MAX_DEPTH = 36;
const MAX_VALUES = 5_000;

export interface ShownInput {
  input: unknown;
  options: RequestOption[];
}

/**
 * Returns the whole input of a request, as a person sees it before allowing. A request whose input can't be shown whole
 * can only be denied.
 *
 * @param isWhole false: parts of it have been cut before
 */
export function shownInput(input: unknown, options: readonly RequestOption[], isWhole = true): ShownInput {
  if (isWhole && isShowable(input)) return { input, options: [...options] };
  return {
    input: { text: 'What it asks for is too long to be shown, so it can only be denied.' },
    options: options.filter(({ kind }) => kind === 'deny'),
  };
}

export function isShowable(input: unknown): boolean {
  return hasRoom(input, { values: MAX_VALUES }, 0) && jsonBytes(JSON.stringify(input) ?? '') <= MAX_BYTES;
}

function hasRoom(value: unknown, left: { values: number }, depth: number): boolean {
  left.values -= 1;
  if (left.values < 0 || depth > MAX_DEPTH) return false;
  if (typeof value === 'string') return value.length <= MAX_BYTES;
  if (typeof value !== 'object' || value === null) return true;
  return Object.values(value).every((one) => hasRoom(one, left, depth + 1));
}
