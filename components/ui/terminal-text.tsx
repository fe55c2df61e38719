'use client';

import { clsx } from 'clsx';
import { useMemo, useState } from 'react';
import { parseAnsi, stripAnsi } from './ansi';
import { CopyButton } from './copy-button';

/** Beyond this even "show all" shows only the end: a browser lays out no ten megabytes. Copy still has everything. */
const MOST_CHARACTERS = 400_000;

/**
 * Output as a terminal would have shown it. Long output shows its end, where the result stands, until all is asked for.
 *
 * @param label what it is, for the copy button: "output", "input"
 */
export function TerminalText(props: { text: string; label: string; clampLines?: number; className?: string }) {
  const { text, label, clampLines = 16, className } = props;
  const [all, setAll] = useState(false);
  const lines = useMemo(() => text.replace(/\s+$/, '').split('\n'), [text]);
  const clamped = !all && lines.length > clampLines + 2;
  const spans = useMemo(() => {
    const shown = (clamped ? lines.slice(-clampLines) : lines).join('\n');
    return parseAnsi(shown.length > MOST_CHARACTERS ? shown.slice(-MOST_CHARACTERS) : shown);
  }, [lines, clamped, clampLines]);

  return (
    <div className={clsx('group/code relative', className)}>
      {clamped && (
        <button
          type="button"
          onClick={() => setAll(true)}
          className="mb-1 block text-2xs text-ink-3 underline decoration-line-strong underline-offset-2 hover:text-ink"
        >
          Show all {lines.length.toLocaleString('en')} lines
        </button>
      )}
      <pre className="overflow-x-auto whitespace-pre-wrap break-words text-xs text-ink-2">
        {/* An element between: browsers swallow a line break that follows <pre> at once. */}
        <span>
          {spans.map((span, at) =>
            span.className === null ? (
              span.text
            ) : (
              // biome-ignore lint/suspicious/noArrayIndexKey: spans of a text have no other identity
              <span key={at} className={span.className}>
                {span.text}
              </span>
            ),
          )}
        </span>
      </pre>
      <CopyButton
        label={`Copy ${label}`}
        text={() => stripAnsi(text)}
        className="absolute top-0.5 right-0 bg-inherit pointer-coarse:opacity-100 opacity-0 group-focus-within/code:opacity-100 group-hover/code:opacity-100"
      />
    </div>
  );
}
