'use client';

import { clsx } from 'clsx';
import { useMemo, useState } from 'react';
import { hasControls, parseAnsi, stripAnsi } from './ansi';
import { CopyButton } from './copy-button';
import { longRunClass, needsBreaks, withBreaks } from './line-breaks';
import { lastPart } from './truncate';
import { UnfoldButton } from './unfold';
import { countLines } from './verbatim-page';

/** What is shown until all of it is asked for: of one long line, about as much as of many. */
const CHARACTERS_PER_LINE = 120;
/** Beyond this even "show all" shows only the end: a browser lays out no more without a pause. Copy still has everything. */
const MOST_CHARACTERS = 40_000;
const MOST_LINES = 2_000;

/**
 * Output as a terminal would have shown it. Long output shows its end, where the result stands, until all is asked for.
 *
 * @param label what it is, for the copy button: "output", "input"
 */
export function TerminalText(props: { text: string; label: string; clampLines?: number; className?: string }) {
  const { label, clampLines = 16, className } = props;
  const [all, setAll] = useState(false);
  const text = useMemo(() => props.text.trimEnd(), [props.text]);
  const folded = useMemo(() => foldedPart(text, clampLines), [text, clampLines]);
  const isFolded = folded.isCut && !all;
  const shown = useMemo(
    () => (isFolded ? folded : lastPart(text, { lines: MOST_LINES, characters: MOST_CHARACTERS })),
    [folded, isFolded, text],
  );

  return (
    <div className={clsx('group/code relative', className)}>
      {isFolded && (
        <UnfoldButton onPress={() => setAll(true)} className="mb-1 block text-2xs text-ink-3">
          Show all {wordsOf(text, clampLines)}
        </UnfoldButton>
      )}
      {!isFolded && shown.isCut && (
        <p className="mb-1 text-2xs text-ink-3">
          The end of {wordsOf(text, clampLines)}. Copying takes all of {label}.
        </p>
      )}
      <pre
        className={clsx('overflow-x-auto whitespace-pre-wrap break-words text-xs text-ink-2', longRunClass(shown.text))}
      >
        <AnsiText text={shown.text} />
      </pre>
      <CopyButton
        label={hasControls(props.text) ? `Copy ${label} without its control characters` : `Copy ${label}`}
        text={() => stripAnsi(props.text)}
        className="absolute top-0.5 right-0 bg-inherit pointer-coarse:opacity-100 opacity-0 group-focus-within/code:opacity-100 group-hover/code:opacity-100"
      />
    </div>
  );
}

/** Two lines too many are no reason to fold. */
function foldedPart(text: string, lines: number) {
  const whole = lastPart(text, roomOf(lines + 2));
  return whole.isCut ? lastPart(text, roomOf(lines)) : whole;
}

function roomOf(lines: number) {
  return { lines, characters: lines * CHARACTERS_PER_LINE };
}

function wordsOf(text: string, clampLines: number): string {
  const lines = countLines(text);
  return lines > clampLines + 2
    ? `${lines.toLocaleString('en')} lines`
    : `${text.length.toLocaleString('en')} characters`;
}

/** Output in its colours, without whatever else a terminal would have obeyed. */
function AnsiText({ text }: { text: string }) {
  const spans = useMemo(() => parseAnsi(text), [text]);
  const breaks = useMemo(() => needsBreaks(text), [text]);
  // An element around it: browsers swallow a line break that follows <pre> at once.
  return (
    <span>
      {spans.map((span, at) =>
        span.className === null ? (
          withBreaks(span.text, breaks)
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: spans of a text have no other identity
          <span key={at} className={span.className}>
            {withBreaks(span.text, breaks)}
          </span>
        ),
      )}
    </span>
  );
}
