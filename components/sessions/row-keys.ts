import { useState } from 'react';

/**
 * Keys for rows. A row that jumps ahead gets a new one, unless it has the focus: React would move every row that it
 * passes, which in a list of three hundred takes longer than a frame.
 */
export function useRowKeys(ids: readonly string[]): (id: string) => string {
  const [known] = useState(() => ({ ids, jumps: new Map<string, number>() }));
  const { jumps } = known;
  const places = new Map(known.ids.map((id, index) => [id, index]));
  let first = known.ids.length;
  const jumped = ids.toReversed().filter((id) => {
    const place = places.get(id) ?? first;
    first = Math.min(first, place);
    return place > first && document.activeElement?.getAttribute('data-session-row') !== id;
  });
  // Else many rows have moved down.
  if (jumped.length * 4 < ids.length) for (const id of jumped) jumps.set(id, (jumps.get(id) ?? 0) + 1);
  known.ids = ids;
  return (id) => `${jumps.get(id) ?? 0} ${id}`;
}
