import type { LogComponentList } from '@interlude/protocol/read-models';
import { logComponents } from '@/db/schema';
import { columnText, shapeOf } from '@/db/table-rows';
import type { Sight } from '@/lib/server/access/sight';
import { agentKnown } from './agent-known';
import { query, readTogether } from './read-together';

/** A list to choose from: an agent that makes up component names has more than anybody reads. */
const MAX_COMPONENTS = 1000;

const COMPONENT = shapeOf(logComponents, 'component', 'lines');

/**
 * The components that write to an agent's log, by name.
 *
 * @returns null when there is no such agent
 */
export async function readLogComponents(sight: Sight, agentId: string): Promise<LogComponentList | null> {
  const id = columnText(agentId);
  const sql = `SELECT ${COMPONENT.columns()} FROM log_components WHERE agent_id = ? ORDER BY component LIMIT ?`;
  const { position, found } = await readTogether(sight, [
    agentKnown(sight, id),
    query(COMPONENT.read, sql, id, MAX_COMPONENTS),
  ]);
  const [agent, components] = found;
  if (agent.length === 0) return null;
  return { position, components: components.map(({ component, lines }) => ({ name: component, lines })) };
}
