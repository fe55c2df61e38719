import { useState } from 'react';

/**
 * Keys for rows. A row that jumps ahead gets a new one, unless it has the focus: React would move every row that it
 * passes, which in a list of three hundred takes longer than a frame.
 */
export function useRowKeys(ids: readonly string[]): (id: string) => string {
  const [keys] = useState(() => new RowKeys());
  keys.update(ids);
  return keys.keyOf;
}

class RowKeys {
  #ids: readonly string[] = [];
  readonly #jumps = new Map<string, number>();

  update(ids: readonly string[]): void {
    const places = new Map(this.#ids.map((id, index) => [id, index]));
    let first = this.#ids.length;
    const jumped = ids.toReversed().filter((id) => {
      const place = places.get(id) ?? first;
      first = Math.min(first, place);
      return place > first && document.activeElement?.getAttribute('data-session-row') !== id;
    });
    // Else many rows have moved down.
    if (jumped.length * 4 < ids.length) for (const id of jumped) this.#jumps.set(id, 1 + this.#jumpsOf(id));
    this.#ids = ids;
  }

  readonly keyOf = (id: string): string => `${this.#jumpsOf(id)} ${id}`;

  #jumpsOf(id: string): number {
    return this.#jumps.get(id) ?? 0;
  }
}
