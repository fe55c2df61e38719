import { useMemo } from 'react';
import { parseAnsi } from './ansi';
import { needsBreaks, withBreaks } from './with-breaks';

/** Output in its colours, without whatever else a terminal would have obeyed. */
export function AnsiText({ text }: { text: string }) {
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
