import type { Database } from '@/db/client';
import { columnText } from '@/db/column-text';
import type { LogComponentList } from '@/lib/protocol/read-models';
import { COUNTER, counterOf } from './counter';

/** A list to choose from. An agent that names its components by chance has more than anybody reads. */
const MAX_COMPONENTS = 1000;

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
        sql: `SELECT component AS name, lines FROM log_components WHERE agent_id = ?
          ORDER BY component LIMIT ${MAX_COMPONENTS}`,
        args: [id],
      },
    ],
    'read',
  );
  if (agent?.rows.length === 0) return null;
  const components = (found?.rows ?? []).map(({ name, lines }) => ({ name: String(name), lines: Number(lines) }));
  return { position: counterOf(counter), components };
}
