'use client';

import { clsx } from 'clsx';
import { useMemo } from 'react';
import { longRunClass } from '../long-run';
import { LongText, MoreText } from '../long-text';
import { endOfFirstProse, proseText } from '../prose';
import { Blocks } from './block';
import { useParsed } from './use-parsed';

/** What follows is shown as it was written, and only when it is asked for. */
const MOST_CHARACTERS = 120_000;

/** What is shown of what is not parsed yet, or never will be: a page may have many such texts. */
const AS_WRITTEN = 2_000;

/**
 * What an agent said, as elements.
 *
 * Failure: hostile by assumption. There is no HTML anywhere on the way (tokens become React elements, raw HTML stays
 * text), links lead only to http, https and mailto, nothing is fetched. What can't be parsed, or would take too long, is
 * shown as written.
 */
export function Markdown(props: { text: string; streaming?: boolean; className?: string }) {
  const { text, streaming = false, className } = props;
  // Cut before it is cleaned, cleaned before it is parsed.
  const end = useMemo(() => endOfFirstProse(text, MOST_CHARACTERS), [text]);
  const clean = useMemo(() => proseText(text.slice(0, end)), [text, end]);
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
      {rest !== '' && isDone && <p className="my-1 text-2xs text-ink-3">The rest is shown as it was written.</p>}
      <MoreText text={text} from={end} />
    </div>
  );
}
