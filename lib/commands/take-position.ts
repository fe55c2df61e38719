import type { WriteTransaction } from '@/db/write-queue';

/** Takes the counter's next number, for a row that is not an event. */
export async function takePosition(transaction: WriteTransaction): Promise<number> {
  const { rows } = await transaction.execute(
    `INSERT INTO counter (id, position) VALUES (1, 1)
     ON CONFLICT (id) DO UPDATE SET position = position + 1 RETURNING position`,
  );
  return Number(rows[0]?.position);
}
