'use client';

import { clsx } from 'clsx';
import { memo, useMemo, useState } from 'react';
import { CopyButton } from '@/components/ui/copy-button';
import { plural } from '@/components/ui/duration';
import { Pieces } from '@/components/ui/name';
import { UnfoldButton, useHoldTail } from '@/components/ui/unfold';
import { type DiffPlace, type DiffRow, type DiffSegment, diffSegments, linesFrom, nextRows } from './diff-rows';
import type { Edit, Edits, EditsDiff } from './edits';

const FIRST = { characters: 6_000, lines: 40, pieces: 800 };
const FURTHER = { characters: 20_000, lines: 500, pieces: 2_000 };

const BEGINNING: DiffPlace = { segment: 0, offset: 0 };

/** What edits change, line by line. Only lines that changed have a colour, and each of those its sign. */
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
        {only !== undefined && <Copies edit={only} isWhole={edits.isWhole} />}
        {segments.length === 0 && <p className="px-2 text-ink-3 text-xs">{edits.isWhole ? 'empty' : 'nothing'}</p>}
        {pages.map((rows, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: pages follow one another, and none is ever moved
          <Page key={at} rows={rows} edits={edits.edits} open={open} />
        ))}
      </div>
      {end !== null && (
        <UnfoldButton onPress={() => setPageCount(pageCount + 1)} className="mt-1 block text-2xs text-ink-2">
          Show {left > FURTHER.lines ? `the next ${FURTHER.lines} of ` : ''}
          {left.toLocaleString('en')} more {left === 1 ? 'line' : 'lines'}
        </UnfoldButton>
      )}
      {edits.isWhole && isUnended(only) && (
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

function Copies({ edit, isWhole }: { edit: Edit; isWhole: boolean }) {
  const className =
    'pointer-coarse:opacity-100 opacity-0 focus-visible:opacity-100 group-focus-within/code:opacity-100 group-hover/code:opacity-100';
  return (
    <div className="pointer-coarse:static absolute top-1 right-1.5 flex justify-end gap-2 px-1">
      {isWhole ? (
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
    return rows.map((row, at) => {
      switch (row.kind) {
        case 'head':
          return (
            <p
              key={`edit ${row.id}`}
              className={clsx('px-2 py-0.5 text-2xs text-ink-3', row.edit > 0 && 'mt-1 border-t')}
            >
              Edit {row.edit + 1} of {edits.length}
              {edits[row.edit]?.everywhere && ', wherever it stands'}
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
          // biome-ignore lint/suspicious/noArrayIndexKey: lines of a text have no other identity
          return <Line key={at} row={row} />;
      }
    });
  },
  (before, after) => before.rows === after.rows,
);

const LOOK = {
  same: { tag: 'div', sign: '', ground: '', ink: '' },
  removed: { tag: 'del', sign: '−', ground: 'bg-removed-soft', ink: 'text-failed' },
  added: { tag: 'ins', sign: '+', ground: 'bg-added-soft', ink: 'text-working' },
} as const;

function Line({ row }: { row: Extract<DiffRow, { pieces: unknown }> }) {
  const { tag: Tag, sign, ground, ink } = LOOK[row.kind];
  return (
    <Tag className={clsx('flex min-h-[18px] no-underline', ground)}>
      <span aria-hidden="true" className={clsx('w-[22px] shrink-0 select-none text-center font-mono text-xs', ink)}>
        {row.goesOn ? '' : sign}
      </span>
      <span className="verbatim min-w-0 flex-1 pr-2">
        <Pieces pieces={row.pieces} />
      </span>
    </Tag>
  );
}
