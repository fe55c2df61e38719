export function rowsIn(list: HTMLElement | null, selector: string): HTMLElement[] {
  return [...(list?.querySelectorAll<HTMLElement>(selector) ?? [])];
}

/**
 * Moves the focus to the next or previous row, and stops at the ends.
 *
 * @param start the row to step from while no row has the focus; without it, the first or last row gets the focus
 * @returns false if there is no row
 */
export function focusRow(rows: readonly HTMLElement[], step: 1 | -1, start?: HTMLElement): false | undefined {
  const focused = rows.findIndex((row) => row.contains(document.activeElement));
  const at = focused >= 0 ? focused : start === undefined ? -1 : rows.indexOf(start);
  return goTo(at < 0 ? (step > 0 ? rows[0] : rows.at(-1)) : rows[Math.min(rows.length - 1, Math.max(0, at + step))]);
}

/** @returns false without a row */
export function goTo(row: HTMLElement | undefined): false | undefined {
  if (row === undefined) return false;
  row.focus();
  row.scrollIntoView({ block: 'nearest' });
}

/** Focuses a search field, with its text selected. */
export function focusSearch(field: HTMLInputElement | null): void {
  field?.focus();
  field?.select();
}
