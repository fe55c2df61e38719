import type { Turn } from '../read-models';

/** What stands in the place of a secret. */
const MARK = /\[redacted: [a-z0-9-]{1,40}\]/g;
const COUNTS = new WeakMap<Turn, number>();

/** How many secrets were taken out of what is shown of some turns. Each is looked at once, as long as it stays as it is. */
export function countRedacted(turns: readonly Turn[]): number {
  return turns.reduce((sum, turn) => {
    const count = COUNTS.get(turn) ?? countIn(turn);
    COUNTS.set(turn, count);
    return sum + count;
  }, 0);
}

function countIn(turn: Turn): number {
  let count = 0;
  const look = (value: unknown): void => {
    if (typeof value === 'string') count += value.includes('[redacted: ') ? (value.match(MARK)?.length ?? 0) : 0;
    else if (typeof value === 'object' && value !== null) for (const field of Object.values(value)) look(field);
  };
  for (const item of turn.items) {
    // the arguments are there twice
    look(item.kind === 'tool-call' ? { ...item, args: null } : item);
  }
  return count;
}
