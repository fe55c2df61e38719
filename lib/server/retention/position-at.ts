import type { Reader } from '@/db/reader';

/**
 * The newest position up to which everything was received before a time, in about forty small reads: positions follow
 * the server's clock, which no index has to repeat.
 *
 * @param before epoch milliseconds, on the server's clock
 * @returns 0 if nothing was
 */
export async function positionAt(reader: Pick<Reader, 'execute'>, before: number): Promise<number> {
  const { rows } = await reader.execute('SELECT max(position) AS position FROM events');
  let [low, high] = [0, Number(rows[0]?.position ?? 0)];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const { rows: next } = await reader.execute({
      sql: 'SELECT position, received_at FROM events WHERE position > ? ORDER BY position LIMIT 1',
      args: [middle],
    });
    const [event] = next;
    if (event === undefined || Number(event.received_at) >= before) high = middle;
    else low = Number(event.position);
  }
  return low;
}
