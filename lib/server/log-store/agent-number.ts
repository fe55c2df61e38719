import type { WriteTransaction } from '@/db/writes';

/** The number an agent has in the ids of its chunks. It gets it with its first chunk. */
export async function agentNumberOf(transaction: WriteTransaction, agentId: string): Promise<number> {
  await transaction.execute({
    sql: `UPDATE agent_logs SET number = (SELECT ifnull(max(number), 0) + 1 FROM agent_logs)
      WHERE agent_id = ? AND number IS NULL`,
    args: [agentId],
  });
  const { rows } = await transaction.execute({
    sql: 'SELECT number FROM agent_logs WHERE agent_id = ?',
    args: [agentId],
  });
  return Number(rows[0]?.number);
}
