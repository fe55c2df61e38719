'use client';

import { truncateText } from '@interlude/protocol/text';
import { clsx } from 'clsx';
import { memo, useMemo, useState } from 'react';
import { CopyButton } from './copy-button';
import { plural } from './duration';
import { countLines } from './format-size';
import { longRunClass } from './line-breaks';
import { Pieces } from './name';
import { UnfoldButton, useReportFolded } from './unfold';
import { type VerbatimPiece, verbatimPieces } from './verbatim';

const FURTHER = { characters: 20_000, lines: 1_000 };

/**
 * Text that an agent passes to a tool, verbatim: escapes, carriage returns and direction marks have no effect. Starts at
 * the beginning, wraps lines, and unfolds page by page.
 *
 * @param label names the text for a copy button; without a label there is no button
 * @param first overrides the first page, for texts that share a limit (see `firstPages`)
 */
export function VerbatimText(props: { text: string; first?: VerbatimPage; label?: string; className?: string }) {
  const { text, label, className } = props;
  const [pageCount, setPageCount] = useState(1);
  const pages = usePages(text, props.first, pageCount);
  const end = pages.at(-1)?.end ?? 0;
  const rest = useMemo(() => remainderText(text, end), [text, end]);
  const parts = useReportFolded(end < text.length);
  return (
    <div className={clsx('group/code min-w-0', className)}>
      {label !== undefined && (
        <CopyButton
          label={`Copy ${label}`}
          text={() => text}
          className="float-right mt-0.5 ml-2 pointer-coarse:opacity-100 opacity-0 focus-visible:opacity-100 group-focus-within/code:opacity-100 group-hover/code:opacity-100"
        />
      )}
      <div className="verbatim">
        {text === '' && <span className="text-ink-3">empty</span>}
        {pages.map((page) => (
          <Page key={page.end} page={page} />
        ))}
      </div>
      {end < text.length && (
        <UnfoldButton
          onPress={() => {
            parts?.takeFocus();
            setPageCount(pageCount + 1);
          }}
          className="mt-1 block font-sans text-2xs text-ink-2"
        >
          Show more: {rest}
        </UnfoldButton>
      )}
    </div>
  );
}

const Page = memo(
  function Page({ page }: { page: VerbatimPage }) {
    return (
      <span>
        <Pieces pieces={page.pieces} />
      </span>
    );
  },
  (before, after) => before.page === after.page,
);

function usePages(text: string, firstPage: VerbatimPage | undefined, count: number): VerbatimPage[] {
  const first = useMemo(() => firstPage ?? verbatimPage(text, 0, FIRST_PAGE), [text, firstPage]);
  const further = useMemo(() => {
    const pages: VerbatimPage[] = [];
    for (let end = first.end; pages.length < count - 1 && end < text.length; ) {
      const page = verbatimPage(text, end, FURTHER);
      pages.push(page);
      end = page.end;
    }
    return pages;
  }, [text, first, count]);
  return [first, ...further];
}

/** Summaries are short, and a page may have hundreds. */
const SUMMARY = { characters: 4_000, lines: 200, pieces: 100 };

/**
 * A summary or an error from an agent, verbatim: escapes and carriage returns have no effect, because people base
 * decisions on the text.
 */
export function VerbatimLines({ text, className }: { text: string; className?: string }) {
  const { pieces, end } = useMemo(() => verbatimPage(text, 0, SUMMARY), [text]);
  return (
    <span className={clsx('[overflow-wrap:anywhere]', longRunClass(text.slice(0, end)), className)}>
      <Pieces pieces={pieces} />
      {end < text.length && '…'}
    </span>
  );
}

/** A longer error is a trace or a dump, and unfolds page by page. */
const SHORT_ERROR = { characters: 800, lines: 8, pieces: 100 };

/** An error message, verbatim: inline if it is short. */
export function ErrorText({ text }: { text: string }) {
  const isShort = text.length <= SHORT_ERROR.characters && countLines(text) <= SHORT_ERROR.lines;
  const first = useMemo(() => (isShort ? null : verbatimPage(text, 0, SHORT_ERROR)), [text, isShort]);
  if (first === null) return <VerbatimLines text={text} />;
  return <VerbatimText text={text} first={first} label="error" />;
}

export interface PageLimits {
  characters: number;
  lines: number;
  /** Bounds the number of elements: each label is one. */
  pieces?: number;
}

export interface VerbatimPage {
  pieces: VerbatimPiece[];
  /** Start of the next page. */
  end: number;
}

const MAX_PIECES = 1_000;

/** The next page of a text. Ends after a line break if there is one. */
export function verbatimPage(text: string, from: number, limits: PageLimits): VerbatimPage {
  const whole = text.slice(from, endOf(text, from, limits));
  const max = limits.pieces ?? MAX_PIECES;
  const pieces = verbatimPieces(whole, 'lines', max);
  if (pieces.length <= max) return { pieces, end: from + whole.length };
  const first = pieces.slice(0, max);
  return { pieces: first, end: from + first.reduce((sum, piece) => sum + piece.text.length, 0) };
}

function endOf(text: string, from: number, { characters, lines }: PageLimits): number {
  let end = from;
  for (let line = 0; line < lines; line++) {
    const next = text.indexOf('\n', end);
    if (next === -1 || next + 1 > from + characters) {
      const isLast = text.length <= from + characters;
      if (isLast && next === -1) return text.length;
      // At least one whole character, even if it exceeds the page.
      return end > from
        ? end
        : from + Math.max(1, truncateText(text.slice(from, from + characters + 1), characters).length);
    }
    end = next + 1;
  }
  return end;
}

/** `12 more lines, 3,401 characters`. */
function remainderText(text: string, from: number): string {
  const rest = text.slice(from);
  const lines = countLines(rest);
  const characters = plural(rest.length, 'character');
  return lines > 1 ? `${lines.toLocaleString('en')} more lines, ${characters}` : `${characters} more`;
}

/** Limits of one text's first page. */
export const FIRST_PAGE = { characters: 6_000, lines: 100, pieces: 1_000 };
/** Limits of all first pages together: as much as a browser lays out without a pause. */
const TOGETHER = { characters: 18_000, lines: 300, pieces: 1_000 };
/** Minimum for each text, however much earlier ones use. */
const MINIMUM = { characters: 100, lines: 3, pieces: 5 };
/** Fixed layout cost of a text, in pieces. */
const TEXT_PIECES = 15;

const MEASURES = ['characters', 'lines', 'pieces'] as const;

/**
 * The first pages of texts that are shown together. Each text gets its minimum, and earlier texts get more of what is
 * left, because dozens of full-size pages would freeze the browser.
 */
export function firstPages(texts: readonly string[]): VerbatimPage[] {
  const left = { ...TOGETHER, pieces: TOGETHER.pieces - TEXT_PIECES * (texts.length - 1) };
  // A short text needs less than the minimum.
  const reserved = ({ length }: string, measure: keyof typeof MINIMUM) => Math.min(MINIMUM[measure], length);
  for (const text of texts) for (const measure of MEASURES) left[measure] -= reserved(text, measure);
  return texts.map((text) => {
    const limits = { ...MINIMUM };
    for (const measure of MEASURES) {
      left[measure] += reserved(text, measure);
      limits[measure] = Math.max(MINIMUM[measure], Math.min(FIRST_PAGE[measure], left[measure]));
    }
    const page = verbatimPage(text, 0, limits);
    left.characters -= page.end;
    left.lines -= countLines(text.slice(0, page.end));
    left.pieces -= page.pieces.length;
    return page;
  });
}
