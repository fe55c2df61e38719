import type { LogComponentList } from '@interlude/protocol/read-models';
import { useQuery } from '@tanstack/react-query';
import { fetchJson } from '@/components/live/fetch-json';
import { CopyButton } from '@/components/ui/copy-button';
import { plural } from '@/components/ui/duration';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';
import { plainLine } from './log-format';
import { type ChangeLogSettings, fieldTime, type LogSettings, timeFromField } from './log-settings';
import type { LogStore } from './log-store';

/** The contents of the toolbar's popovers. */

export interface ComponentChoicesProps {
  agentId: string;
  components: readonly string[];
  onComponents: (components: string[]) => void;
}

export function ComponentChoices({ agentId, components, onComponents }: ComponentChoicesProps) {
  const list = useQuery({
    queryKey: ['log-components', agentId],
    queryFn: ({ signal }) =>
      fetchJson<LogComponentList>(`/agents/${encodeURIComponent(agentId)}/logs/components`, signal),
    refetchOnMount: 'always',
  });
  const known = list.data?.components ?? [];
  // A component named by a link may have no lines left.
  const unknown = components.filter((name) => !known.some((one) => one.name === name));
  const rows = [...known, ...unknown.map((name) => ({ name, lines: 0 }))];
  return (
    <>
      {list.isError && <p className="text-failed">The components could not be loaded: {list.error.message}</p>}
      {list.isFetching && rows.length === 0 && <p className="text-ink-3">Loading…</p>}
      {list.data !== undefined && rows.length === 0 && <p className="text-ink-3">No lines yet.</p>}
      <ul>
        {rows.map(({ name, lines }) => (
          <li key={name}>
            <label className="flex items-center gap-2 py-0.5">
              <input
                type="checkbox"
                checked={components.includes(name)}
                onChange={({ target }) =>
                  onComponents(target.checked ? [...components, name] : components.filter((one) => one !== name))
                }
                className="accent-ink"
              />
              <span className="min-w-0 flex-1 truncate font-mono" title={nameText(name)}>
                <Name text={name || '(none)'} />
              </span>
              <span className="tabular text-2xs text-ink-3">{lines.toLocaleString('en')}</span>
            </label>
          </li>
        ))}
      </ul>
      {components.length > 0 && (
        <button type="button" onClick={() => onComponents([])} className="mt-1 text-ink-3 underline hover:text-ink">
          All components
        </button>
      )}
    </>
  );
}

const MINUTE_MS = 60_000;
const SPANS: [string, number][] = [
  ['Last 15 minutes', 15 * MINUTE_MS],
  ['Last hour', 60 * MINUTE_MS],
  ['Last 24 hours', 24 * 60 * MINUTE_MS],
];

export interface TimeChoicesProps {
  from: number | null;
  to: number | null;
  isUtc: boolean;
  onSpan: (from: number | null, to: number | null) => void;
}

export function TimeChoices({ from, to, isUtc, onSpan }: TimeChoicesProps) {
  return (
    <div className="flex flex-col gap-2">
      <TimeField label="From" at={from} isUtc={isUtc} onTime={(at) => onSpan(at, to)} />
      <TimeField label="To" at={to} isUtc={isUtc} onTime={(at) => onSpan(from, at)} />
      <div className="flex flex-wrap gap-x-4 gap-y-1 text-ink-2">
        {SPANS.map(([name, ms]) => (
          <button
            key={name}
            type="button"
            onClick={() => onSpan(Date.now() - ms, null)}
            className="underline decoration-line-strong underline-offset-2 hover:text-ink"
          >
            {name}
          </button>
        ))}
        {(from !== null || to !== null) && (
          <button type="button" onClick={() => onSpan(null, null)} className="underline hover:text-ink">
            Any time
          </button>
        )}
      </div>
    </div>
  );
}

function TimeField(props: { label: string; at: number | null; isUtc: boolean; onTime: (at: number | null) => void }) {
  const { label, at, isUtc, onTime } = props;
  return (
    <label className="flex items-center gap-2">
      <span className="w-[5ch] text-ink-3">{label}</span>
      <input
        type="datetime-local"
        step={1}
        value={at === null ? '' : fieldTime(at, isUtc)}
        onChange={(event) => onTime(timeFromField(event.target.value, isUtc))}
        className="min-w-0 flex-1 rounded bg-raised px-1.5 py-1 font-mono"
      />
      <span className="text-2xs text-ink-3">{isUtc ? 'UTC' : 'local'}</span>
    </label>
  );
}

export interface ViewChoicesProps {
  settings: LogSettings;
  onSettings: ChangeLogSettings;
  store: LogStore | null;
}

export function ViewChoices({ settings, onSettings, store }: ViewChoicesProps) {
  const { isRelative, isUtc, wraps } = settings;
  return (
    <>
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
          label={`Copy ${plural(store.window.heldCount, 'loaded line')}`}
          withLabel
          text={() => [...store.window.lines()].map(plainLine).join('\n')}
          className="mt-2"
        />
      )}
    </>
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
