import { diffArrays } from 'diff';
import { countLines } from '@/components/ui/count-lines';

/** Lines in a row that fared alike. Each ends with a line break; of the last one, that may be ours. */
export interface DiffChunk {
  kind: 'same' | 'removed' | 'added';
  text: string;
  lines: number;
}

/**
 * Beyond so many lines, or so many of them changed, what is different is shown as it was before and as it is after:
 * lining it up takes the square of that.
 */
const MOST_LINES = 20_000;
export const MOST_CHANGED = 500;

/**
 * What became of a text, line by line: the chunks that are not `added` are all of it, and those that are not `removed`
 * all of what it became.
 *
 * @param mostChanged more changed lines than these are not lined up
 */
export function lineDiff(before: string, after: string, mostChanged = MOST_CHANGED): DiffChunk[] {
  const [old, now] = withLastBreaks(before, after);
  const from = commonHead(old, now);
  const tail = commonTail(old, now, from);
  const removed = old.slice(from, old.length - tail);
  const added = now.slice(from, now.length - tail);
  return joined([
    chunk('same', old.slice(0, from)),
    ...changed(removed, added, mostChanged),
    chunk('same', old.slice(old.length - tail)),
  ]);
}

/** These are parts of files: that both end without a line break says nothing, and that one of them does says much. */
function withLastBreaks(before: string, after: string): [string, string] {
  const isEnded = (text: string) => text === '' || text.endsWith('\n');
  if (isEnded(before) && isEnded(after)) return [before, after];
  return [before === '' ? '' : `${before}\n`, after === '' ? '' : `${after}\n`];
}

/** Where the lines end that both begin with. */
function commonHead(one: string, other: string): number {
  const most = Math.min(one.length, other.length);
  let at = 0;
  while (at < most && one.charCodeAt(at) === other.charCodeAt(at)) at += 1;
  return at === 0 ? 0 : one.lastIndexOf('\n', at - 1) + 1;
}

/** How long the lines are that both end with, behind their common head. */
function commonTail(one: string, other: string, head: number): number {
  const most = Math.min(one.length, other.length) - head;
  let length = 0;
  while (length < most && one.charCodeAt(one.length - 1 - length) === other.charCodeAt(other.length - 1 - length)) {
    length += 1;
  }
  const begins = (text: string) => text.length - length === head || text[text.length - length - 1] === '\n';
  if (length === 0 || (begins(one) && begins(other))) return length;
  return one.length - (one.indexOf('\n', one.length - length) + 1);
}

function changed(before: string, after: string, mostChanged: number): DiffChunk[] {
  const apart = [chunk('removed', before), chunk('added', after)];
  if (before === '' || after === '' || countLines(before) + countLines(after) > MOST_LINES) return apart;
  const numbers = new Map<string, number>();
  const [old, now] = [linesOf(before), linesOf(after)];
  // Lines that are long and alike almost to their end would be compared over and over: numbers are told apart at once.
  const numbered = (lines: readonly string[]) =>
    lines.map((line) => {
      const number = numbers.get(line) ?? numbers.size;
      numbers.set(line, number);
      return number;
    });
  const parts = diffArrays(numbered(old), numbered(now), { maxEditLength: mostChanged });
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
