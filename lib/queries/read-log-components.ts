import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import type { LogComponentList } from '@/lib/protocol/read-models';
import { COUNTER, counterOf } from './counter';

/**
 * What writes into an agent's log, by name.
 *
 * @returns null when there is no such agent
 */
export async function readLogComponents(database: Database, agentId: string): Promise<LogComponentList | null> {
  const id = columnText(agentId);
  const [counter, agent, found] = await database.reader.batch(
    [
      COUNTER,
      { sql: 'SELECT 1 FROM agents WHERE id = ?', args: [id] },
      {
        sql: `SELECT component AS name, count(*) AS lines FROM log_lines WHERE agent_id = ?
          GROUP BY component ORDER BY component`,
        args: [id],
      },
    ],
    'read',
  );
  if (agent?.rows.length === 0) return null;
  const components = (found?.rows ?? []).map(({ name, lines }) => ({ name: String(name), lines: Number(lines) }));
  return { position: counterOf(counter), components };
}
