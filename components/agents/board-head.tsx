'use client';

import { clsx } from 'clsx';
import { ArrowDown, ArrowUp } from 'lucide';
import { Icon } from '@/components/ui/icon';
import { COLUMNS, isDescending, SORTS, type Sort } from './board-columns';
import { type BoardQuery, PICK } from './board-filter';
import { BOARD_GRID, placeOf } from './board-rows';

/** The column names, which stay in view. A press sorts by the column, a second press reverses the order. */
export function BoardHead(props: {
  columns: readonly Sort[];
  query: BoardQuery;
  onSort: (sort: Sort) => void;
  isAll: boolean;
  onAll: (isAll: boolean) => void;
}) {
  const { columns, query, onSort, isAll, onAll } = props;
  return (
    // biome-ignore lint/a11y/useSemanticElements: as the rows below
    <div role="rowgroup" className="sticky top-12 short:top-0 z-[5] bg-ground">
      {/* biome-ignore lint/a11y/useSemanticElements: as the rows below */}
      <div
        role="row"
        tabIndex={-1}
        className={clsx(BOARD_GRID, 'border-line-strong border-b py-1.5 text-2xs text-ink-3')}
      >
        {/* biome-ignore lint/a11y/useFocusableInteractive: its field takes the focus */}
        {/* biome-ignore lint/a11y/useSemanticElements: as the rows below */}
        <div role="columnheader">
          <label className="-m-1.5 pointer-coarse:-m-4 flex p-1.5 pointer-coarse:p-4">
            <input
              type="checkbox"
              aria-label="Select all shown agents"
              checked={isAll}
              onChange={(event) => onAll(event.target.checked)}
              className="accent-ink"
            />
          </label>
        </div>
        {columns.map((sort) => (
          // biome-ignore lint/a11y/useFocusableInteractive: its button takes the focus
          // biome-ignore lint/a11y/useSemanticElements: as the rows below
          <div
            key={sort}
            role="columnheader"
            aria-sort={query.sort !== sort ? 'none' : isDescending(sort, query.isReversed) ? 'descending' : 'ascending'}
            className={placeOf(sort, true)}
          >
            <button
              type="button"
              onClick={() => onSort(sort)}
              className={clsx('hit whitespace-nowrap hover:text-ink', query.sort === sort && 'font-medium text-ink')}
            >
              {COLUMNS[sort].word}
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

/** Sorts the agents, also by columns that are not shown. */
export function BoardSort(props: {
  sort: Sort;
  isReversed: boolean;
  onSort: (sort: Sort, isReversed: boolean) => void;
}) {
  const { sort, isReversed, onSort } = props;
  const descends = isDescending(sort, isReversed);
  return (
    <span className="flex items-center">
      <span aria-hidden="true" className="pr-1.5 @max-4xl:hidden">
        Sort by
      </span>
      <select
        aria-label="Sort by"
        value={sort}
        onChange={({ target }) => onSort(target.value as Sort, false)}
        className={PICK}
      >
        {SORTS.map((one) => (
          <option key={one} value={one}>
            {COLUMNS[one].word}
          </option>
        ))}
      </select>
      <button
        type="button"
        aria-label={descends ? 'Descending: reverse order' : 'Ascending: reverse order'}
        onClick={() => onSort(sort, !isReversed)}
        className="grid size-6 shrink-0 pointer-coarse:size-11 place-items-center rounded text-ink-2 hover:text-ink"
      >
        <Icon of={descends ? ArrowDown : ArrowUp} size={13} />
      </button>
    </span>
  );
}
