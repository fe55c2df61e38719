'use client';

import { clsx } from 'clsx';
import { useMemo, useRef } from 'react';
import { stripAnsi } from '../ansi';
import { longRunClass } from '../long-run';
import { Blocks } from './block';
import { NOTHING_SETTLED, parse, parseFurther } from './parse';

/**
 * What an agent said, as elements.
 *
 * Failure: hostile by assumption. There is no HTML anywhere on the way (tokens become React elements, raw HTML stays
 * text), links lead only to http, https and mailto, nothing is fetched. What can't be parsed is shown as written.
 */
export function Markdown(props: { text: string; streaming?: boolean; className?: string }) {
  const { text, streaming = false, className } = props;
  const settled = useRef(NOTHING_SETTLED);
  const tokens = useMemo(() => {
    if (!streaming) return parse(text);
    settled.current = parseFurther(settled.current, text);
    return settled.current.shown;
  }, [text, streaming]);
  return (
    <div
      className={clsx(
        'max-w-prose text-md [overflow-wrap:anywhere] *:first:mt-0 *:last:mb-0',
        longRunClass(text),
        className,
      )}
    >
      {tokens === null ? (
        <p className="whitespace-pre-wrap">{stripAnsi(text)}</p>
      ) : (
        <Blocks tokens={tokens} streaming={streaming} depth={0} />
      )}
    </div>
  );
}
