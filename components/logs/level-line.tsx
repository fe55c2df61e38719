'use client';

import { clsx } from 'clsx';
import { useHydrated, useNow } from '@/components/ui/now';
import { type LevelSource, type LevelWords, levelWords } from './level-words';
import { clockTime } from './log-time';

/** Nothing is known of the reader's own clock before the browser has taken over. */
const UNKNOWN = '\u2007\u2007:\u2007\u2007:\u2007\u2007';
const TONE: Record<LevelWords['tone'], string> = {
  plain: 'text-ink-2',
  waiting: 'text-waiting',
  failed: 'text-failed',
};

/** What is written and what was asked, in words, as of this second. What changes is heard, but for what only ticks. */
export function LevelLine({ agent, className }: { agent: LevelSource; className?: string }) {
  const isHydrated = useHydrated();
  const clock = (at: number) => (isHydrated ? clockTime(at) : UNKNOWN);
  // As text, because only a change of what is said should render.
  const said = useNow((now) => JSON.stringify(levelWords(agent, now, clock)));
  const { tone, parts } = JSON.parse(said) as LevelWords;
  return (
    <span role="status" className={clsx('tabular [overflow-wrap:anywhere]', TONE[tone], className)}>
      {parts.map(({ text, ticks }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a part is known by its place
        <span key={at} aria-live={ticks && 'off'}>
          {text}
        </span>
      ))}
    </span>
  );
}
