import { truncateText } from '@interlude/protocol/text';

/** A line of more is no line that people write: what somebody has said is one of a few hundred. */
export const LONGEST_LINE = 6_000;
/** What stays of it: some ten lines of a page. */
export const LINE_KEPT = 800;

export interface FoldedLines {
  text: string;
  /** How long all of the text is; null if nothing of it is folded. */
  wholeLength: number | null;
}

/**
 * A text of markdown with nothing but the beginning of lines that are very long: one of data can be as long as
 * thousands of others. Those of code stay, which is folded where it is shown. Work: of a text without such a line, next
 * to none.
 */
export function foldLines(text: string): FoldedLines {
  const lines = longLines(text);
  const folded = lines.length === 0 ? [] : outsideCode(text, lines);
  if (folded.length === 0) return { text, wholeLength: null };
  let shown = '';
  let from = 0;
  for (const { start, end } of folded) {
    shown += `${text.slice(from, start)}${truncateText(text.slice(start, start + LINE_KEPT + 1), LINE_KEPT)}…`;
    from = end;
  }
  return { text: shown + text.slice(from), wholeLength: text.length };
}

interface Line {
  start: number;
  end: number;
}

function longLines(text: string): Line[] {
  const lines: Line[] = [];
  for (let start = 0; start + LONGEST_LINE < text.length; ) {
    // From behind: of lines that people write, a few thousand signs are passed over at a time.
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
 * Where the beginning of a text ends that is at most so long: behind a line where one ends nearby, and never between
 * the two halves of a character.
 */
export function endOfFirstPart(text: string, most: number): number {
  if (text.length <= most) return text.length;
  const lineEnd = text.lastIndexOf('\n', most - 1) + 1;
  if (lineEnd > most / 2) return lineEnd;
  return truncateText(text, most).length;
}

/** The end of a text, as far as it is shown. */
interface LastPart {
  text: string;
  /** Whether something before it is left out. */
  isCut: boolean;
}

/**
 * The last lines of a text, of which a single one may be a megabyte. Nothing before them is looked at: what is shown is
 * cut first and cleaned, split and parsed then.
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
  // never between the two halves of a character
  if (from > 0 && /[\udc00-\udfff]/.test(text.charAt(from))) from += 1;
  return { text: text.slice(from), isCut: from > 0 };
}
