import { clsx } from 'clsx';
import { useMemo } from 'react';
import { longRunClass } from './long-run';
import { Pieces } from './name';
import { verbatimPage } from './verbatim-page';

/** Its beginning: what sums something up is a few lines, and there may be hundreds on a page. */
const MOST = { characters: 4_000, lines: 200, pieces: 100 };

/**
 * What an agent says of something beside its name, a summary or an error, as it is: no escape is obeyed and no line
 * overwritten, because people decide by it.
 */
export function VerbatimLines({ text, className }: { text: string; className?: string }) {
  const { pieces, end } = useMemo(() => verbatimPage(text, 0, MOST), [text]);
  return (
    <span className={clsx('[overflow-wrap:anywhere]', longRunClass(text.slice(0, end)), className)}>
      <Pieces pieces={pieces} />
      {end < text.length && '…'}
    </span>
  );
}
