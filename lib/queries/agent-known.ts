import { type Query, query } from './read-together';

/** Finds a row if the agent exists. */
export function agentKnown(agentId: string): Query<true> {
  return query(() => true, 'SELECT 1 FROM agents WHERE id = ?', agentId);
}
