'use client';

import { clsx } from 'clsx';
import { ArrowDown, ArrowUp } from 'lucide';
import { Icon } from '@/components/ui/icon';
import { isDescending, SORT_WORD, SORTS, type Sort } from './board-columns';
import type { BoardQuery } from './board-filter';
import { BOARD_GRID, ON_WIDE, ON_WIDEST } from './board-rows';

const WHERE: Record<Sort, string> = {
  name: '',
  state: ON_WIDE,
  provider: ON_WIDEST,
  host: ON_WIDEST,
  sessions: `${ON_WIDE} text-right`,
  tasks: `${ON_WIDE} text-right`,
  owed: `${ON_WIDE} text-right`,
  level: `${ON_WIDEST} pl-4`,
  ledger: ON_WIDEST,
  seen: 'text-right',
};

/** The column names. A press sorts by the column, a second press reverses the order. */
export function BoardHead(props: {
  query: BoardQuery;
  onSort: (sort: Sort) => void;
  isAll: boolean;
  onAll: (isAll: boolean) => void;
}) {
  const { query, onSort, isAll, onAll } = props;
  return (
    // biome-ignore lint/a11y/useSemanticElements: as the rows below
    <div role="rowgroup">
      {/* biome-ignore lint/a11y/useSemanticElements: as the rows below */}
      <div
        role="row"
        tabIndex={-1}
        className={clsx(BOARD_GRID, 'border-line-strong border-b py-1 text-2xs text-ink-3')}
      >
        {/* biome-ignore lint/a11y/useFocusableInteractive: its field takes the focus */}
        {/* biome-ignore lint/a11y/useSemanticElements: as the rows below */}
        <div role="columnheader">
          <label className="-m-1.5 flex p-1.5">
            <input
              type="checkbox"
              aria-label="Select all shown agents"
              checked={isAll}
              onChange={(event) => onAll(event.target.checked)}
              className="accent-ink"
            />
          </label>
        </div>
        {SORTS.map((sort) => (
          // biome-ignore lint/a11y/useFocusableInteractive: its button takes the focus
          // biome-ignore lint/a11y/useSemanticElements: as the rows below
          <div
            key={sort}
            role="columnheader"
            aria-sort={query.sort !== sort ? 'none' : isDescending(sort, query.isReversed) ? 'descending' : 'ascending'}
            className={clsx('min-w-0', WHERE[sort])}
          >
            <button
              type="button"
              onClick={() => onSort(sort)}
              className={clsx('hit whitespace-nowrap hover:text-ink', query.sort === sort && 'font-medium text-ink')}
            >
              {SORT_WORD[sort]}
              <span aria-hidden="true">
                {query.sort !== sort ? '' : isDescending(sort, query.isReversed) ? ' ↓' : ' ↑'}
              </span>
            </button>
          </div>
        ))}
      </div>
    </div>
  );
}

/** Sorts the agents on boards too narrow for all columns. */
export function BoardSort(props: {
  sort: Sort;
  isReversed: boolean;
  onSort: (sort: Sort, isReversed: boolean) => void;
}) {
  const { sort, isReversed, onSort } = props;
  const descends = isDescending(sort, isReversed);
  return (
    <span className="flex items-center gap-1 @6xl:hidden">
      <select
        aria-label="Sort by"
        value={sort}
        onChange={({ target }) => onSort(target.value as Sort, false)}
        className="h-6 rounded border border-line bg-ground px-1 text-ink-2"
      >
        {SORTS.map((one) => (
          <option key={one} value={one}>
            {SORT_WORD[one]}
          </option>
        ))}
      </select>
      <button
        type="button"
        aria-label={descends ? 'Descending: reverse order' : 'Ascending: reverse order'}
        onClick={() => onSort(sort, !isReversed)}
        className="grid size-6 place-items-center rounded text-ink-2 hover:text-ink"
      >
        <Icon of={descends ? ArrowDown : ArrowUp} size={13} />
      </button>
    </span>
  );
}
