'use client';

import { ArrowDown, ArrowUp } from 'lucide';
import { Icon } from '@/components/ui/icon';
import { isDescending, SORT_WORD, SORTS, type Sort } from './board-columns';

/** What the agents are sorted by, where there is no room for the columns that would do it. */
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
        aria-label={descends ? 'Greatest first: turn round' : 'Least first: turn round'}
        onClick={() => onSort(sort, !isReversed)}
        className="grid size-6 place-items-center rounded text-ink-2 hover:text-ink"
      >
        <Icon of={descends ? ArrowDown : ArrowUp} size={13} />
      </button>
    </span>
  );
}
