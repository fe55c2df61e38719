import { describe, expect, it } from 'vitest';
import { byName } from '@/components/agents/board-columns';
import { heldOrder, NEW_ROWS, type RowOrder } from '@/components/ui/held-order';

const order = (groups: Record<string, string[]>): RowOrder =>
  Object.entries(groups).map(([name, ids]) => ({ name, ids }));

describe('heldOrder', () => {
  const held = order({ failed: ['a'], working: ['b', 'c', 'd'] });

  it('keeps every row in place and counts those that would move', () => {
    const now = order({ failed: ['c', 'a'], working: ['b', 'd'] });
    expect(heldOrder(held, now)).toEqual({ order: held, moved: 1, added: 0 });
  });

  it('counts the fewest rows that have to move', () => {
    expect(heldOrder(held, order({ failed: ['a'], working: ['d', 'b', 'c'] })).moved).toBe(1);
    expect(heldOrder(held, order({ failed: ['a'], working: ['d', 'c', 'b'] })).moved).toBe(2);
    expect(heldOrder(held, order({ failed: ['a'], working: ['b', 'c', 'd'] })).moved).toBe(0);
  });

  it('puts new rows last, where they stay', () => {
    const now = order({ waiting: ['x'], failed: ['a'], working: ['b', 'y', 'c', 'd'] });
    const shown = heldOrder(held, now);
    expect(shown).toEqual({ order: [...held, { name: NEW_ROWS, ids: ['x', 'y'] }], moved: 0, added: 2 });
    const later = order({ failed: ['y', 'a'], working: ['z', 'b', 'c', 'd', 'x'] });
    expect(heldOrder(shown.order, later)).toEqual({
      order: [...held, { name: NEW_ROWS, ids: ['x', 'y', 'z'] }],
      moved: 0,
      added: 3,
    });
  });

  it('returns the same object while unchanged, and holds no empty list', () => {
    const shown = heldOrder(held, order({ failed: ['a', 'x'], working: ['b', 'c', 'd'] })).order;
    expect(heldOrder(shown, order({ failed: ['a'], working: ['x', 'b', 'c', 'd'] })).order).toBe(shown);
    const now = order({ working: ['a'] });
    expect(heldOrder([], now)).toEqual({ order: now, moved: 0, added: 0 });
  });

  it('drops removed rows and empty groups', () => {
    const now = order({ working: ['b', 'd'] });
    expect(heldOrder(held, now)).toEqual({ order: order({ working: ['b', 'd'] }), moved: 0, added: 0 });
  });

  it('keeps rows that a search no longer finds', () => {
    const now = order({ failed: ['a'], working: ['b', 'd'] });
    expect(heldOrder(held, now, (id) => id === 'c')).toEqual({ order: held, moved: 1, added: 0 });
  });

  it('orders ten thousand reversed rows in milliseconds', () => {
    const ids = Array.from({ length: 10_000 }, (_, index) => `row-${index}`);
    expect(heldOrder(order({ all: ids }), order({ all: ids.toReversed() })).moved).toBe(9_999);
  });
});

it('agents are sorted by name, numerically and without case', () => {
  const names = ['runner-10', 'Runner-2', 'runner-2', 'build', 'Zebra', 'alpha'];
  expect(names.toSorted(byName)).toEqual(['alpha', 'build', 'Runner-2', 'runner-2', 'runner-10', 'Zebra']);
});
