'use client';

import { SlidersHorizontal } from 'lucide';
import { CopyButton } from '@/components/ui/copy-button';
import { Icon } from '@/components/ui/icon';
import { countOf } from '@/components/ui/size-of';
import { FilterPopover } from './filter-popover';
import type { ChangeLogSettings, LogSettings } from './log-settings';
import type { LogStore } from './log-store';
import { plainLine } from './log-words';

/** How lines look. The browser remembers it for every log. */
export function ViewMenu(props: { settings: LogSettings; onSettings: ChangeLogSettings; store: LogStore | null }) {
  const { settings, onSettings, store } = props;
  const { isRelative, isUtc, wraps } = settings;
  return (
    <FilterPopover
      label="View"
      chosen={null}
      align="end"
      icon={<Icon of={SlidersHorizontal} size={14} strokeWidth={1.75} />}
    >
      <Choice
        name="Time"
        onChange={onSettings}
        options={[
          ['clock', !isRelative, { isRelative: false }],
          ['how long ago', isRelative, { isRelative: true }],
        ]}
      />
      <Choice
        name="Zone"
        onChange={onSettings}
        options={[
          ['local', !isUtc, { isUtc: false }],
          ['UTC', isUtc, { isUtc: true }],
        ]}
      />
      <Choice
        name="Long lines"
        onChange={onSettings}
        options={[
          ['cut off', !wraps, { wraps: false }],
          ['wrapped', wraps, { wraps: true }],
        ]}
      />
      {store !== null && store.window.heldCount > 0 && (
        <CopyButton
          label={`Copy the ${countOf(store.window.heldCount, 'line')} loaded`}
          withLabel
          text={() => [...store.window.lines()].map(plainLine).join('\n')}
          className="mt-2"
        />
      )}
    </FilterPopover>
  );
}

function Choice(props: {
  name: string;
  options: [string, boolean, Partial<LogSettings>][];
  onChange: ChangeLogSettings;
}) {
  const { name, options } = props;
  return (
    <div role="radiogroup" aria-label={name} className="flex items-baseline gap-3 py-1">
      <span className="w-[10ch] text-ink-3">{name}</span>
      {options.map(([word, isChosen, change]) => (
        <label key={word} className="flex items-center gap-1.5">
          <input
            type="radio"
            name={`log-${name}`}
            checked={isChosen}
            onChange={() => props.onChange(change)}
            className="accent-ink"
          />
          {word}
        </label>
      ))}
    </div>
  );
}
