import type { WriteTransaction } from '@/db/writes';

/** Takes the counter's next number, for a row that is not an event. */
export async function takePosition(transaction: WriteTransaction): Promise<number> {
  const position = (await transaction.position()) + 1;
  await transaction.moveTo(position);
  return position;
}
