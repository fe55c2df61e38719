import { cutText } from '@/lib/protocol/cut-text';

/** A line of more is no line that people write: what somebody has said is one of a few hundred. */
export const LONGEST_LINE = 6_000;
/** What stays of it: some ten lines of a page. */
export const LINE_KEPT = 800;

export interface FoldedLines {
  text: string;
  /** How long all of the text is; null where nothing of it is folded. */
  wholeLength: number | null;
}

/**
 * A text of markdown with nothing but the beginning of lines that are very long: one of data can be as long as thousands
 * of others. Those of code stay, which is folded where it is shown. Work: one walk over the text.
 */
export function foldLines(text: string): FoldedLines {
  if (text.length <= LONGEST_LINE) return { text, wholeLength: null };
  const kept: string[] = [];
  let from = 0;
  let fence: string | null = null;
  for (let at = 0; at < text.length; ) {
    const next = text.indexOf('\n', at);
    const end = next === -1 ? text.length : next;
    const mark = /^[ \t>]{0,80}(`{3,}|~{3,})/.exec(text.slice(at, Math.min(end, at + 200)))?.[1];
    if (mark !== undefined) fence = fence === null ? mark : mark.startsWith(fence) ? null : fence;
    if (fence === null && end - at > LONGEST_LINE) {
      kept.push(text.slice(from, at), cutText(text.slice(at, at + LINE_KEPT + 1), LINE_KEPT), '…');
      from = end;
    }
    at = end + 1;
  }
  return kept.length === 0
    ? { text, wholeLength: null }
    : { text: `${kept.join('')}${text.slice(from)}`, wholeLength: text.length };
}
