'use client';

import { clsx } from 'clsx';
import { useMemo, useState } from 'react';
import { CopyButton } from '../copy-button';
import { foldLines } from '../fold-lines';
import { longRunClass } from '../long-run';
import { LongText, MoreText } from '../long-text';
import { endOfFirstProse, proseText } from '../prose';
import { sizeInWords } from '../size-in-words';
import { UnfoldButton } from '../unfold';
import { Blocks } from './block';
import { useParsed } from './use-parsed';

/** The rest is shown as written, on demand. */
const MOST_CHARACTERS = 120_000;

/** Characters shown of unparsed text. A page may have many such texts. */
const AS_WRITTEN = 2_000;

/**
 * An agent's Markdown as elements.
 *
 * Failure: the text may be hostile. No step produces HTML (tokens become React elements, raw HTML stays text), links
 * lead only to http, https and mailto, and nothing is fetched. A text that can't be parsed in time is shown as written.
 */
export function Markdown(props: { text: string; streaming?: boolean; className?: string }) {
  const { text, streaming = false, className } = props;
  const [all, setAll] = useState(false);
  const folded = useMemo(() => (all ? { text, wholeLength: null } : foldLines(text)), [text, all]);
  // Cut, then cleaned, then parsed.
  const end = useMemo(() => endOfFirstProse(folded.text, MOST_CHARACTERS), [folded]);
  const clean = useMemo(() => proseText(folded.text.slice(0, end)), [folded, end]);
  const { tokens, rest, isDone } = useParsed(clean, streaming);
  return (
    <div
      className={clsx(
        'max-w-prose text-md [overflow-wrap:anywhere] *:first:mt-0 *:last:mb-0',
        longRunClass(clean),
        className,
      )}
    >
      <Blocks tokens={tokens} streaming={streaming} depth={0} />
      {rest !== '' && <LongText text={rest} most={AS_WRITTEN} className="my-2" />}
      {rest !== '' && isDone && <p className="my-1 text-2xs text-ink-3">The rest is shown as written.</p>}
      <MoreText text={folded.text} from={end} />
      {folded.wholeLength !== null && (
        <p className="my-1 flex items-center gap-3 text-2xs text-ink-3">
          <UnfoldButton onPress={() => setAll(true)}>Show all ({sizeInWords(folded.wholeLength)})</UnfoldButton>
          <CopyButton label="Copy all" text={() => text} />
        </p>
      )}
    </div>
  );
}
