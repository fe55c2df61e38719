import type { WriteTransaction } from '@/db/write-queue';

/** The counter's next number, for a row that is no event's. */
export function takePosition(transaction: WriteTransaction): Promise<number> {
  return takePositions(transaction, 1);
}

/** @returns the first of so many numbers, which follow each other */
export async function takePositions(transaction: WriteTransaction, count: number): Promise<number> {
  const { rows } = await transaction.execute({
    sql: `INSERT INTO counter (id, position) VALUES (1, ?1)
          ON CONFLICT (id) DO UPDATE SET position = position + ?1 RETURNING position`,
    args: [count],
  });
  return Number(rows[0]?.position) - count + 1;
}
