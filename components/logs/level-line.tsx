'use client';

import { clsx } from 'clsx';
import { useNow } from '@/components/ui/now';
import { type LevelSource, type LevelWords, levelWords } from './level-words';
import { useWallClock } from './use-wall-clock';

const TONE: Record<LevelWords['tone'], string> = {
  plain: 'text-ink-2',
  waiting: 'text-waiting',
  failed: 'text-failed',
};

/** What is written and what was asked, in words, as of this second. */
export function LevelLine({ agent, className }: { agent: LevelSource; className?: string }) {
  const clock = useWallClock();
  // A string, because only a change of what is said should render.
  const said = useNow((now) => {
    const { tone, text } = levelWords(agent, now, clock);
    return `${tone} ${text}`;
  });
  const tone = said.slice(0, said.indexOf(' ')) as LevelWords['tone'];
  return (
    <span className={clsx('tabular [overflow-wrap:anywhere]', TONE[tone], className)}>
      {said.slice(tone.length + 1)}
    </span>
  );
}

/** What changes in it, for whoever listens: without the seconds. */
export function LevelNews({ agent }: { agent: LevelSource }) {
  const heard = useNow((now) => levelWords(agent, now, () => '').heard);
  return (
    <span role="status" className="sr-only">
      {heard}
    </span>
  );
}
