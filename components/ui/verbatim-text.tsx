'use client';

import { clsx } from 'clsx';
import { memo, useMemo, useState } from 'react';
import { CopyButton } from './copy-button';
import { longRunClass } from './line-breaks';
import { Pieces } from './name';
import { UnfoldButton, useReportFolded } from './unfold';
import { countLines, FIRST_PAGE, remainderText, type VerbatimPage, verbatimPage } from './verbatim-page';

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

function usePages(text: string, given: VerbatimPage | undefined, count: number): VerbatimPage[] {
  const first = useMemo(() => given ?? verbatimPage(text, 0, FIRST_PAGE), [text, given]);
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
