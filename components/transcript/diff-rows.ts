import type { VerbatimPiece } from '@/components/ui/verbatim';
import { type PageLimits, verbatimPage } from '@/components/ui/verbatim-page';
import type { DiffChunk } from './line-diff';

/** Unchanged lines that are shown around what changed. */
const CONTEXT = 3;
/** Fewer are not worth a fold. */
const LEAST_FOLDED = 4;

/** What a diff is shown as, in order: lines that fared alike, unchanged ones that are folded, the head of an edit. */
export type DiffSegment =
  | ({ id: string } & DiffChunk)
  | { id: string; kind: 'folded'; lines: number }
  | { id: string; kind: 'head'; edit: number };

export type DiffRow =
  /** `goesOn`: the line began in the row before. */
  { kind: DiffChunk['kind']; pieces: readonly VerbatimPiece[]; goesOn: boolean } | Exclude<DiffSegment, DiffChunk>;

/**
 * @param diffs of each edit; one alone has no head
 * @param opened the ids of folded segments that were asked for
 */
export function diffSegments(diffs: readonly (readonly DiffChunk[])[], opened: ReadonlySet<string>): DiffSegment[] {
  return diffs.flatMap((chunks, edit) => {
    const head: DiffSegment[] = diffs.length === 1 ? [] : [{ id: `${edit}`, kind: 'head', edit }];
    const segments = chunks.flatMap((chunk, at) => {
      const id = `${edit}.${at}`;
      if (chunk.kind !== 'same' || opened.has(id)) return [{ id, ...chunk }];
      return folded(id, chunk, at === 0 ? 0 : CONTEXT, at === chunks.length - 1 ? 0 : CONTEXT);
    });
    return [...head, ...segments];
  });
}

function folded(id: string, chunk: DiffChunk, first: number, last: number): DiffSegment[] {
  const lines = chunk.lines - first - last;
  if (lines < LEAST_FOLDED) return [{ id, ...chunk }];
  const { text } = chunk;
  let from = 0;
  for (let line = 0; line < first; line++) from = text.indexOf('\n', from) + 1;
  let to = text.length;
  for (let line = 0; line < last; line++) to = text.lastIndexOf('\n', to - 2) + 1;
  return [
    ...(first === 0 ? [] : [{ id: `${id}<`, kind: 'same' as const, text: text.slice(0, from), lines: first }]),
    { id, kind: 'folded', lines },
    ...(last === 0 ? [] : [{ id: `${id}>`, kind: 'same' as const, text: text.slice(to), lines: last }]),
  ];
}

/** A place in segments. */
export interface DiffPlace {
  segment: number;
  /** In the text of it. */
  offset: number;
}

/** The rows that are shown next, as many as a page lays out without a pause, and where those after them begin. */
export function nextRows(
  segments: readonly DiffSegment[],
  from: DiffPlace,
  limits: Required<PageLimits>,
): { rows: DiffRow[]; end: DiffPlace | null } {
  const left = { ...limits };
  const rows: DiffRow[] = [];
  let { segment: at, offset } = from;
  for (let segment = segments[at]; segment !== undefined; segment = segments[at]) {
    if (left.lines <= 0 || left.characters <= 0 || left.pieces <= 0) return { rows, end: { segment: at, offset } };
    left.lines -= 1;
    if (segment.kind === 'head' || segment.kind === 'folded') {
      rows.push(segment);
      at += 1;
      continue;
    }
    const { kind, text } = segment;
    const lineEnd = text.indexOf('\n', offset);
    // No more of a line is cut out than can be shown of it.
    const rest = text.slice(offset, Math.min(lineEnd, offset + left.characters + 1));
    const page = verbatimPage(rest, 0, { ...left, lines: 1 });
    rows.push({ kind, pieces: page.pieces, goesOn: offset > 0 && text[offset - 1] !== '\n' });
    left.characters -= page.end;
    left.pieces -= page.pieces.length;
    offset += page.end;
    if (offset === lineEnd) offset += 1;
    if (offset < text.length) continue;
    at += 1;
    offset = 0;
  }
  return { rows, end: null };
}

/** How many lines, folded or not, are still to come. */
export function linesFrom(segments: readonly DiffSegment[], { segment: from, offset }: DiffPlace): number {
  let lines = 0;
  for (const [at, segment] of segments.slice(from).entries()) {
    if (segment.kind === 'head') continue;
    lines += segment.lines;
    if (at > 0 || segment.kind === 'folded') continue;
    for (let end = segment.text.indexOf('\n'); end !== -1 && end < offset; end = segment.text.indexOf('\n', end + 1)) {
      lines -= 1;
    }
  }
  return lines;
}
