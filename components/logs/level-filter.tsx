'use client';

import { LOG_LEVELS, type LogLevel } from '@interlude/protocol/record-vocabulary';
import { clsx } from 'clsx';
import { RadioGroup } from 'radix-ui';
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
      onKeyDownCapture={(event) => {
        const way = WAYS[event.key];
        if (way === undefined || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
        // The group itself would move the focus in a timer, when the reader may be elsewhere or at the next key.
        event.preventDefault();
        const radios = [...event.currentTarget.querySelectorAll<HTMLElement>('[role="radio"]')];
        const to = (radios.indexOf(event.target as HTMLElement) + way) % radios.length;
        radios.at(to)?.focus();
        choose(LOG_LEVELS.at(to) ?? lowest);
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
