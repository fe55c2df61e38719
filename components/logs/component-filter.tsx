'use client';

import type { LogComponentList } from '@interlude/protocol/read-models';
import { useQuery } from '@tanstack/react-query';
import { fetchJson } from '@/components/live/fetch-json';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';
import { FilterPopover } from './filter-popover';

/** What writes into the log; any of those that are chosen. */
export function ComponentFilter(props: {
  agentId: string;
  components: readonly string[];
  onComponents: (components: string[]) => void;
}) {
  const { agentId, components, onComponents } = props;
  const list = useQuery({
    queryKey: ['log-components', agentId],
    queryFn: ({ signal }) =>
      fetchJson<LogComponentList>(`/agents/${encodeURIComponent(agentId)}/logs/components`, signal),
    enabled: false,
  });
  const known = list.data?.components ?? [];
  // one that a link names may have no line any more
  const unknown = components.filter((name) => !known.some((one) => one.name === name));
  const rows = [...known, ...unknown.map((name) => ({ name, lines: 0 }))];
  const [first, ...others] = components;
  const chosen = first === undefined ? null : `${first || '(none)'}${others.length > 0 ? ` +${others.length}` : ''}`;
  return (
    <FilterPopover label="Component" chosen={chosen} onOpen={() => void list.refetch()}>
      {list.isError && <p className="text-failed">{list.error.message}</p>}
      {list.isFetching && rows.length === 0 && <p className="text-ink-3">Loading…</p>}
      {list.data !== undefined && rows.length === 0 && <p className="text-ink-3">Nothing has been written yet.</p>}
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
    </FilterPopover>
  );
}
