'use client';

import type { RefObject } from 'react';
import { ButtonPopover } from '@/components/ui/popover';
import { COLUMNS, SORTS, type Sort } from './board-columns';

/** Chooses the columns of the board. The name is always shown. */
export function ColumnChooser(props: {
  button: RefObject<HTMLElement | null>;
  columns: readonly Sort[];
  /** Null for the usual columns. */
  onColumns: (columns: Sort[] | null) => void;
  onClose: () => void;
}) {
  const { button, columns, onColumns, onClose } = props;
  const toggle = (sort: Sort, isOn: boolean) =>
    onColumns(SORTS.filter((one) => one !== 'name' && (one === sort ? isOn : columns.includes(one))));
  return (
    <ButtonPopover label="Columns" button={button} onClose={onClose} className="min-w-44 py-1.5 text-xs">
      <fieldset>
        <legend className="sr-only">Shown columns</legend>
        {SORTS.filter((sort) => sort !== 'name').map((sort) => (
          <label key={sort} className="flex min-h-8 items-center gap-2 px-3 hover:bg-raised">
            <input
              type="checkbox"
              checked={columns.includes(sort)}
              onChange={(event) => toggle(sort, event.target.checked)}
              className="accent-ink"
            />
            {COLUMNS[sort].word}
          </label>
        ))}
      </fieldset>
      <div className="mt-1 border-line border-t px-3 pt-1.5">
        <button
          type="button"
          onClick={() => onColumns(null)}
          className="min-h-6 text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink"
        >
          Reset columns
        </button>
      </div>
    </ButtonPopover>
  );
}
