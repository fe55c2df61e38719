'use client';

import { clsx } from 'clsx';
import { useMemo, useState } from 'react';
import { hasControls, parseAnsi, stripAnsi } from './ansi';
import { CopyButton } from './copy-button';
import { countLines } from './format-size';
import { longRunClass, needsBreaks, withBreaks } from './line-breaks';
import { lastPart } from './truncate';
import { UnfoldButton } from './unfold';

/** Folded output is limited in characters, too: one line may be very long. */
const CHARACTERS_PER_LINE = 120;
/** Limit of unfolded output: more would make the browser pause. The copy button copies everything. */
const MAX_CHARACTERS = 40_000;
const MAX_LINES = 2_000;

/**
 * Output as a terminal shows it. Long output is folded to its end, where the result is.
 *
 * @param label names the text for the copy button: `output` or `input`
 */
export function TerminalText(props: { text: string; label: string; clampLines?: number; className?: string }) {
  const { label, clampLines = 16, className } = props;
  const [all, setAll] = useState(false);
  const text = useMemo(() => props.text.trimEnd(), [props.text]);
  const folded = useMemo(() => foldedPart(text, clampLines), [text, clampLines]);
  const isFolded = folded.isCut && !all;
  const shown = useMemo(
    () => (isFolded ? folded : lastPart(text, { lines: MAX_LINES, characters: MAX_CHARACTERS })),
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
          Showing the end of {wordsOf(text, clampLines)}. Copy includes the whole {label}.
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

/** Doesn't fold for one or two lines. */
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

/** Terminal output with its colours. All other control sequences are dropped. */
function AnsiText({ text }: { text: string }) {
  const spans = useMemo(() => parseAnsi(text), [text]);
  const breaks = useMemo(() => needsBreaks(text), [text]);
  // The wrapper keeps a leading line break, which browsers drop right after <pre>.
  return (
    <span>
      {spans.map((span, index) =>
        span.className === null ? (
          withBreaks(span.text, breaks)
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: spans of a text have no other identity
          <span key={index} className={span.className}>
            {withBreaks(span.text, breaks)}
          </span>
        ),
      )}
    </span>
  );
}
