// @vitest-environment happy-dom

import { render } from '@testing-library/react';
import { expect, it } from 'vitest';
import { useRowKeys } from '@/components/sessions/row-keys';

function Rows({ ids }: { ids: string[] }) {
  const keyOf = useRowKeys(ids);
  return (
    <ul>
      {ids.map((id) => (
        <li key={keyOf(id)}>
          <a href={`/${id}`} data-session-row={id}>
            {id}
          </a>
        </li>
      ))}
    </ul>
  );
}

const row = (id: string) => document.querySelector<HTMLElement>(`[data-session-row="${id}"]`);

/** Shows `before`, then `after`. @returns the text of each row that the list removed or moved */
function movedRows(before: string, after: string, focused?: string): string[] {
  const { container, rerender } = render(<Rows ids={[...before]} />);
  if (focused !== undefined) row(focused)?.focus();
  const records: MutationRecord[] = [];
  const observer = new MutationObserver((found) => records.push(...found));
  observer.observe(container, { childList: true, subtree: true });
  rerender(<Rows ids={[...after]} />);
  records.push(...observer.takeRecords());
  observer.disconnect();
  expect(container.textContent).toBe(after);
  return records.flatMap(({ removedNodes }) => [...removedNodes].map(({ textContent }) => textContent ?? '')).sort();
}

it('moves only the rows that jump ahead', () => {
  expect(movedRows('abcdefghi', 'iabcdefgh')).toEqual(['i']);
  expect(movedRows('abcdefghijkl', 'gcabdefhijkl')).toEqual(['c', 'g']);
  expect(movedRows('abcdefghi', 'xabcdefgh')).toEqual(['i']);
});

it('leaves a row that moves down to React', () => {
  expect(movedRows('abcdefghi', 'bcdefghia')).toEqual(['a']);
});

it('keeps the focus in a row that jumps ahead', () => {
  const moved = movedRows('abcdefghi', 'iabcdefgh', 'i');
  expect(moved).not.toEqual([]);
  expect(document.activeElement).toBe(row('i'));
});
