'use client';

import { clsx } from 'clsx';
import { RadioGroup } from 'radix-ui';
import { LOG_LEVELS, type LogLevel } from '@/lib/protocol/log-levels';
import { LEVEL_COLOUR } from './log-words';

const WAYS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** Lines of this level and above are shown. What the runner writes is another matter. */
export function LevelFilter(props: { level: LogLevel | null; onLevel: (level: LogLevel | null) => void }) {
  const { level, onLevel } = props;
  const lowest = LOG_LEVELS[0];
  const current = level ?? lowest;
  const choose = (value: LogLevel) => onLevel(value === lowest ? null : value);
  return (
    <RadioGroup.Root
      aria-label="Show level"
      value={current}
      onValueChange={(value) => choose(value as LogLevel)}
      // the group itself chooses by the focus that follows the key, and when that is let go of before, by none
      onKeyDown={({ key }) => {
        const way = WAYS[key];
        if (way === undefined) return;
        const at = LOG_LEVELS.indexOf(current) + way;
        choose(LOG_LEVELS.at(at % LOG_LEVELS.length) ?? lowest);
      }}
      className="-ml-1.5 flex shrink-0 items-center"
    >
      {LOG_LEVELS.map((one, at) => (
        <RadioGroup.Item
          key={one}
          value={one}
          title={at === 0 ? 'Every line (1)' : `${one} and above (${at + 1})`}
          className={clsx(
            'h-6 border-b-2 px-1.5 hover:text-ink',
            LOG_LEVELS.indexOf(current) > at ? 'text-ink-3 line-through decoration-line-strong' : LEVEL_COLOUR[one],
            one === current ? 'border-ink' : 'border-transparent',
          )}
        >
          {one}
        </RadioGroup.Item>
      ))}
    </RadioGroup.Root>
  );
}
