import { truncateText } from '@interlude/protocol/text';

/** Lines that people write have a few hundred characters. Longer ones are data. */
export const LONGEST_LINE = 6_000;
/** Characters kept of a long line, about ten rows on the page. */
export const TRUNCATED_LENGTH = 800;

interface FoldedLines {
  text: string;
  /** Length of the whole text; null if no line is folded. */
  fullLength: number | null;
}

/**
 * Truncates the very long lines of a Markdown text. Lines in code blocks stay, because code blocks fold by themselves.
 * A text without long lines costs almost nothing.
 */
export function foldLines(text: string): FoldedLines {
  const lines = longLines(text);
  const folded = lines.length === 0 ? [] : outsideCode(text, lines);
  if (folded.length === 0) return { text, fullLength: null };
  let shown = '';
  let from = 0;
  for (const { start, end } of folded) {
    shown += `${text.slice(from, start)}${truncateText(text.slice(start, start + TRUNCATED_LENGTH + 1), TRUNCATED_LENGTH)}…`;
    from = end;
  }
  return { text: shown + text.slice(from), fullLength: text.length };
}

interface Line {
  start: number;
  end: number;
}

function longLines(text: string): Line[] {
  const lines: Line[] = [];
  for (let start = 0; start + LONGEST_LINE < text.length; ) {
    // Searches backwards, which skips thousands of characters of short lines in one step.
    const within = text.lastIndexOf('\n', start + LONGEST_LINE);
    if (within >= start) {
      start = within + 1;
      continue;
    }
    const next = text.indexOf('\n', start + LONGEST_LINE);
    const end = next === -1 ? text.length : next;
    lines.push({ start, end });
    start = end + 1;
  }
  return lines;
}

function outsideCode(text: string, lines: readonly Line[]): Line[] {
  const fences = text.matchAll(/^[ \t>]{0,80}(`{3,}|~{3,})/gm);
  let fence = fences.next();
  let open: string | null = null;
  return lines.filter(({ start }) => {
    for (; fence.value !== undefined && fence.value.index <= start; fence = fences.next()) {
      const mark = fence.value[1] as string;
      if (open === null) open = mark;
      else if (mark.startsWith(open)) open = null;
    }
    return open === null;
  });
}

/**
 * Length of the longest prefix of at most `max` characters. It ends after a line break if one is in its second half,
 * and never splits a surrogate pair.
 */
export function endOfFirstPart(text: string, max: number): number {
  if (text.length <= max) return text.length;
  const lineEnd = text.lastIndexOf('\n', max - 1) + 1;
  if (lineEnd > max / 2) return lineEnd;
  return truncateText(text, max).length;
}

/** The last lines of a text. */
interface LastPart {
  text: string;
  /** True if text before it is left out. */
  isCut: boolean;
}

/**
 * The last lines of a text, within a limit of characters, because one line may be a megabyte. Reads nothing before them:
 * callers truncate first, then clean and parse.
 */
export function lastPart(text: string, limits: { lines: number; characters: number }): LastPart {
  const least = Math.max(0, text.length - limits.characters);
  let from = text.length;
  let end = text.length;
  for (let lines = 0; lines < limits.lines && from >= least; lines++) {
    end = end === 0 ? -1 : text.lastIndexOf('\n', end - 1);
    from = end + 1;
    if (from === 0) break;
  }
  from = Math.max(from, least);
  // Don't split a surrogate pair.
  if (from > 0 && /[\udc00-\udfff]/.test(text.charAt(from))) from += 1;
  return { text: text.slice(from), isCut: from > 0 };
}
