'use client';

import { clsx } from 'clsx';
import { RadioGroup } from 'radix-ui';
import { LOG_LEVELS, type LogLevel } from '@/lib/protocol/envelope';
import { LEVEL_COLOUR } from './log-words';

/** Lines of this level and above are shown. What the runner writes is another matter. */
export function LevelFilter(props: { level: LogLevel | null; onLevel: (level: LogLevel | null) => void }) {
  const { level, onLevel } = props;
  const lowest = LOG_LEVELS[0];
  const current = level ?? lowest;
  return (
    <RadioGroup.Root
      aria-label="Show level"
      value={current}
      onValueChange={(value) => onLevel(value === lowest ? null : (value as LogLevel))}
      orientation="horizontal"
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
