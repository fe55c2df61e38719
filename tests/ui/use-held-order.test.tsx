// @vitest-environment happy-dom
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { useRef, useState } from 'react';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { RowOrder } from '@/components/ui/held-order';
import { useHeldOrder } from '@/components/ui/held-order';

let list: (ids: readonly string[], of?: string) => void;

/** A search field above the rows of `list`. */
function Page() {
  const box = useRef<HTMLElement>(null);
  const [{ order, of }, setListed] = useState({ order: orderOf(['a', 'b', 'c']), of: 'all' });
  list = (ids, of = 'all') => act(() => setListed({ order: orderOf(ids), of }));
  const { order: shown, moved, added, release } = useHeldOrder(box, order, of);
  return (
    <section ref={box} aria-label="Rows">
      <input aria-label="Search" />
      <button type="button" onClick={release}>
        {`${moved} moved, ${added} new`}
      </button>
      <ul>{shown.flatMap(({ ids }) => ids.map((id) => <li key={id}>{id}</li>))}</ul>
    </section>
  );
}
function orderOf(ids: readonly string[]): RowOrder {
  return [{ name: 'group', ids: [...ids] }];
}

beforeEach(() => void render(<Page />));
afterEach(cleanup);

const rows = () => screen.getAllByRole('listitem').map(({ textContent }) => textContent);
const box = () => screen.getByRole('region', { name: 'Rows' });
const enter = () => fireEvent.pointerMove(box());
const leave = () => fireEvent(box(), new Event('pointerleave'));

it('useHeldOrder holds the order while the pointer is over the list', () => {
  enter();
  list(['d', 'c', 'a', 'b']);
  expect(rows()).toEqual(['a', 'b', 'c', 'd']);
  screen.getByText('1 moved, 1 new');
  leave();
  expect(rows()).toEqual(['d', 'c', 'a', 'b']);
});

it('useHeldOrder follows when released', () => {
  enter();
  list(['c', 'a', 'b']);
  fireEvent.click(screen.getByText('1 moved, 0 new'));
  expect(rows()).toEqual(['c', 'a', 'b']);
});

it('useHeldOrder follows immediately when the list is replaced', () => {
  enter();
  list(['c', 'b'], 'a search');
  expect(rows()).toEqual(['c', 'b']);
  screen.getByText('0 moved, 0 new');
});

it('useHeldOrder follows at once while only the search field has the focus', () => {
  act(() => screen.getByRole('textbox').focus());
  list(['c', 'a', 'b']);
  expect(rows()).toEqual(['c', 'a', 'b']);
});
