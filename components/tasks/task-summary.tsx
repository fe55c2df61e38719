'use client';

import { clsx } from 'clsx';
import { useMemo, useState } from 'react';
import { CopyButton } from '@/components/ui/copy-button';
import { longRunClass } from '@/components/ui/long-run';
import { Markdown } from '@/components/ui/markdown/markdown';
import { Words } from '@/components/ui/name';
import { plainWords } from '@/components/ui/plain-words';
import { sizeInWords } from '@/components/ui/size-in-words';
import { useHoldTail } from '@/components/ui/unfold';

/** What three lines hold. */
const PREVIEW_CHARACTERS = 220;
const PREVIEW_LINES = 3;
/** Laid out of it. There may be hundreds on a page. */
const PREVIEW_MOST = 1_000;
const PREVIEW_SIGNS = 100;

/** What a task says of its end: its beginning in words, and all of it as it was written on asking. */
export function TaskSummary({ text }: { text: string }) {
  const hold = useHoldTail();
  const [all, setAll] = useState(false);
  const words = useMemo(() => plainWords(text), [text]);
  const isLong = text.length > PREVIEW_CHARACTERS || text.split('\n', PREVIEW_LINES + 1).length > PREVIEW_LINES;
  return (
    <div className="group/code max-w-prose py-0.5 text-ink-2 text-xs">
      {all ? (
        <Markdown text={text} className="text-xs!" />
      ) : (
        <p dir="auto" className={clsx('line-clamp-3 [overflow-wrap:anywhere]', longRunClass(words))}>
          <Words text={words} most={PREVIEW_MOST} signs={PREVIEW_SIGNS} />
        </p>
      )}
      {isLong && (
        <p className="flex h-5 items-center gap-3 text-2xs text-ink-3">
          <button
            type="button"
            aria-expanded={all}
            onClick={() => {
              hold();
              setAll(!all);
            }}
            className="underline decoration-line-strong underline-offset-2 hover:text-ink"
          >
            {all ? 'Show less' : `Show all (${sizeInWords(text.length)})`}
          </button>
          <CopyButton
            label="Copy summary"
            text={() => text}
            className={clsx(
              'pointer-coarse:opacity-100 focus-visible:opacity-100 group-hover/code:opacity-100',
              !all && 'opacity-0',
            )}
          />
        </p>
      )}
    </div>
  );
}
