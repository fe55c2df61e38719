'use client';

import { clsx } from 'clsx';
import { memo, useMemo, useState } from 'react';
import { CopyButton } from '@/components/ui/copy-button';
import { plural } from '@/components/ui/duration';
import { Pieces } from '@/components/ui/name';
import { UnfoldButton, useHoldTail } from '@/components/ui/unfold';
import type { VerbatimPiece } from '@/components/ui/verbatim';
import { type PageLimits, verbatimPage } from '@/components/ui/verbatim-text';
import type { Edit, Edits, EditsDiff } from './edits';
import type { DiffChunk } from './line-diff';

const FIRST = { characters: 6_000, lines: 40, pieces: 800 };
const FURTHER = { characters: 20_000, lines: 500, pieces: 2_000 };

const BEGINNING: DiffPlace = { segment: 0, offset: 0 };

/** Edits line by line. Only changed lines have a colour and a mark. */
export function ToolDiff({ edits, diff }: { edits: Edits; diff: EditsDiff }) {
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set());
  const [pageCount, setPageCount] = useState(1);
  const segments = useMemo(() => diffSegments(diff.chunks, opened), [diff, opened]);
  const { pages, end } = usePages(segments, pageCount);
  const left = useMemo(() => (end === null ? 0 : linesFrom(segments, end)), [segments, end]);
  const hold = useHoldTail();
  const open = (id: string) => {
    hold();
    setOpened((before) => new Set([...before, id]));
  };
  const [only] = edits.edits.length === 1 ? edits.edits : [];
  return (
    <div className="group/code">
      <div className="relative overflow-hidden rounded border border-line bg-ground py-1 text-ink">
        {only !== undefined && <Copies edit={only} isWholeFile={edits.isWholeFile} />}
        {segments.length === 0 && <p className="px-2 text-ink-3 text-xs">{edits.isWholeFile ? 'empty' : 'nothing'}</p>}
        {pages.map((rows, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: pages never move
          <Page key={index} rows={rows} edits={edits.edits} open={open} />
        ))}
      </div>
      {end !== null && (
        <UnfoldButton onPress={() => setPageCount(pageCount + 1)} className="mt-1 block text-2xs text-ink-2">
          Show {left > FURTHER.lines ? `the next ${FURTHER.lines} of ` : ''}
          {plural(left, 'more line')}
        </UnfoldButton>
      )}
      {edits.isWholeFile && isUnended(only) && (
        <p className="mt-1 text-2xs text-ink-3">No line break at the end of the file.</p>
      )}
    </div>
  );
}

function isUnended(edit: Edit | undefined): boolean {
  return edit !== undefined && edit.after !== '' && !edit.after.endsWith('\n');
}

function usePages(segments: readonly DiffSegment[], count: number): { pages: DiffRow[][]; end: DiffPlace | null } {
  const first = useMemo(() => nextRows(segments, BEGINNING, FIRST), [segments]);
  return useMemo(() => {
    const pages = [first.rows];
    let end = first.end;
    for (; pages.length < count && end !== null; ) {
      const next = nextRows(segments, end, FURTHER);
      pages.push(next.rows);
      end = next.end;
    }
    return { pages, end };
  }, [segments, first, count]);
}

function Copies({ edit, isWholeFile }: { edit: Edit; isWholeFile: boolean }) {
  const className =
    'pointer-coarse:opacity-100 opacity-0 focus-visible:opacity-100 group-focus-within/code:opacity-100 group-hover/code:opacity-100';
  return (
    <div className="pointer-coarse:static absolute top-1 right-1.5 flex justify-end gap-2 px-1">
      {isWholeFile ? (
        <CopyButton label="Copy content" text={() => edit.after} className={className} />
      ) : (
        <>
          <CopyButton label="Copy removed text" text={() => edit.before} className={className} />
          <CopyButton label="Copy added text" text={() => edit.after} className={className} />
        </>
      )}
    </div>
  );
}

interface PageProps {
  rows: readonly DiffRow[];
  edits: readonly Edit[];
  open: (id: string) => void;
}

const Page = memo(
  function Page({ rows, edits, open }: PageProps) {
    return rows.map((row, index) => {
      switch (row.kind) {
        case 'head':
          return (
            <p
              key={`edit ${row.id}`}
              className={clsx('px-2 py-0.5 text-2xs text-ink-3', row.edit > 0 && 'mt-1 border-t')}
            >
              Edit {row.edit + 1} of {edits.length}
              {edits[row.edit]?.everywhere && ', every occurrence'}
            </p>
          );
        case 'folded':
          return (
            <button
              key={`folded ${row.id}`}
              type="button"
              onClick={() => open(row.id)}
              className="flex w-full py-0.5 text-left text-2xs text-ink-3 hover:bg-raised/60 hover:text-ink"
            >
              <span aria-hidden="true" className="w-[22px] shrink-0 text-center">
                ⋯
              </span>
              {plural(row.lines, 'unchanged line')}
            </button>
          );
        default:
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity
          return <Line key={index} row={row} />;
      }
    });
  },
  (before, after) => before.rows === after.rows,
);

const LOOK = {
  same: { tag: 'div', mark: '', ground: '', ink: '' },
  removed: { tag: 'del', mark: '−', ground: 'bg-removed-soft', ink: 'text-failed' },
  added: { tag: 'ins', mark: '+', ground: 'bg-added-soft', ink: 'text-working' },
} as const;

function Line({ row }: { row: Extract<DiffRow, { pieces: unknown }> }) {
  const { tag: Tag, mark, ground, ink } = LOOK[row.kind];
  return (
    <Tag className={clsx('flex min-h-[18px] no-underline', ground)}>
      <span aria-hidden="true" className={clsx('w-[22px] shrink-0 select-none text-center font-mono text-xs', ink)}>
        {row.isContinuation ? '' : mark}
      </span>
      <span className="verbatim min-w-0 flex-1 pr-2">
        <Pieces pieces={row.pieces} />
      </span>
    </Tag>
  );
}

/** Unchanged lines shown around a change. */
const CONTEXT = 3;
/** Fewer lines are not folded. */
const LEAST_FOLDED = 4;

/** Parts of a shown diff, in order: lines of one kind, folded unchanged lines, the head of an edit. */
type DiffSegment =
  | ({ id: string } & DiffChunk)
  | { id: string; kind: 'folded'; lines: number }
  | { id: string; kind: 'head'; edit: number };

export type DiffRow =
  /** `isContinuation`: the line started in the previous row. */
  | { kind: DiffChunk['kind']; pieces: readonly VerbatimPiece[]; isContinuation: boolean }
  | Exclude<DiffSegment, DiffChunk>;

/**
 * @param diffs one per edit; a single edit has no head
 * @param opened ids of unfolded segments
 */
export function diffSegments(diffs: readonly (readonly DiffChunk[])[], opened: ReadonlySet<string>): DiffSegment[] {
  return diffs.flatMap((chunks, edit) => {
    const head: DiffSegment[] = diffs.length === 1 ? [] : [{ id: `${edit}`, kind: 'head', edit }];
    const segments = chunks.flatMap((chunk, index) => {
      const id = `${edit}.${index}`;
      if (chunk.kind !== 'same' || opened.has(id)) return [{ id, ...chunk }];
      return folded(id, chunk, index === 0 ? 0 : CONTEXT, index === chunks.length - 1 ? 0 : CONTEXT);
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

export interface DiffPlace {
  segment: number;
  /** Index in the segment's text. */
  offset: number;
}

/** The next rows, as many as a page lays out without a pause, and where the following ones begin. */
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
    // Reads no more of the line than can be shown.
    const rest = text.slice(offset, Math.min(lineEnd, offset + left.characters + 1));
    const page = verbatimPage(rest, 0, { ...left, lines: 1 });
    rows.push({ kind, pieces: page.pieces, isContinuation: offset > 0 && text[offset - 1] !== '\n' });
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

/** Number of lines that are left, folded or not. */
function linesFrom(segments: readonly DiffSegment[], { segment: from, offset }: DiffPlace): number {
  let lines = 0;
  for (const [index, segment] of segments.slice(from).entries()) {
    if (segment.kind === 'head') continue;
    lines += segment.lines;
    if (index > 0 || segment.kind === 'folded') continue;
    for (let end = segment.text.indexOf('\n'); end !== -1 && end < offset; end = segment.text.indexOf('\n', end + 1)) {
      lines -= 1;
    }
  }
  return lines;
}
