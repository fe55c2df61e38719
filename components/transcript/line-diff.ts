import { diffArrays } from 'diff';
import { countLines } from '@/components/ui/format-size';

/**
 * Consecutive lines that are all kept, all added or all removed. Each line ends with a line break, which is added to
 * the last line if necessary.
 */
export interface DiffChunk {
  kind: 'same' | 'removed' | 'added';
  text: string;
  lines: number;
}

/** Beyond these limits the text is shown as removed and added lines: a diff takes quadratic time. */
const MAX_LINES = 20_000;
export const MAX_CHANGED = 500;

/**
 * The line diff of two texts. Chunks that are not `added` make up the old text, and chunks that are not `removed` make
 * up the new text.
 *
 * @param maxChanged more changed lines are not compared
 */
export function lineDiff(before: string, after: string, maxChanged = MAX_CHANGED): DiffChunk[] {
  const [old, now] = withLastBreaks(before, after);
  const from = commonHead(old, now);
  const tail = commonTail(old, now, from);
  const removed = old.slice(from, old.length - tail);
  const added = now.slice(from, now.length - tail);
  return joined([
    chunk('same', old.slice(0, from)),
    ...changed(removed, added, maxChanged),
    chunk('same', old.slice(old.length - tail)),
  ]);
}

/** The texts are parts of files: a missing last line break matters only if just one has it. */
function withLastBreaks(before: string, after: string): [string, string] {
  const isEnded = (text: string) => text === '' || text.endsWith('\n');
  if (isEnded(before) && isEnded(after)) return [before, after];
  return [before === '' ? '' : `${before}\n`, after === '' ? '' : `${after}\n`];
}

/** Length of the lines that both texts start with. */
function commonHead(one: string, other: string): number {
  const max = Math.min(one.length, other.length);
  let index = 0;
  while (index < max && one.charCodeAt(index) === other.charCodeAt(index)) index += 1;
  return index === 0 ? 0 : one.lastIndexOf('\n', index - 1) + 1;
}

/** Length of the lines that both texts end with, after their common head. */
function commonTail(one: string, other: string, head: number): number {
  const max = Math.min(one.length, other.length) - head;
  let length = 0;
  while (length < max && one.charCodeAt(one.length - 1 - length) === other.charCodeAt(other.length - 1 - length)) {
    length += 1;
  }
  const begins = (text: string) => text.length - length === head || text[text.length - length - 1] === '\n';
  if (length === 0 || (begins(one) && begins(other))) return length;
  return one.length - (one.indexOf('\n', one.length - length) + 1);
}

function changed(before: string, after: string, maxChanged: number): DiffChunk[] {
  const apart = [chunk('removed', before), chunk('added', after)];
  if (before === '' || after === '' || countLines(before) + countLines(after) > MAX_LINES) return apart;
  const numbers = new Map<string, number>();
  const [old, now] = [linesOf(before), linesOf(after)];
  // Numbers compare in constant time; long lines with a common prefix don't.
  const numbered = (lines: readonly string[]) =>
    lines.map((line) => {
      const number = numbers.get(line) ?? numbers.size;
      numbers.set(line, number);
      return number;
    });
  const parts = diffArrays(numbered(old), numbered(now), { maxEditLength: maxChanged });
  if (parts === undefined) return apart;
  const at = { old: 0, now: 0 };
  return parts.map(({ added, removed, count }) => {
    const lines = removed ? old.slice(at.old, at.old + count) : now.slice(at.now, at.now + count);
    if (!added) at.old += count;
    if (!removed) at.now += count;
    return chunk(added ? 'added' : removed ? 'removed' : 'same', lines.join(''));
  });
}

function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n/g) ?? [];
}

function chunk(kind: DiffChunk['kind'], text: string): DiffChunk {
  return { kind, text, lines: countLines(text) - 1 };
}

function joined(chunks: readonly DiffChunk[]): DiffChunk[] {
  const found: DiffChunk[] = [];
  for (const next of chunks) {
    const last = found.at(-1);
    if (next.text === '') continue;
    if (last?.kind !== next.kind) found.push(next);
    else found[found.length - 1] = { ...last, text: last.text + next.text, lines: last.lines + next.lines };
  }
  return found;
}
