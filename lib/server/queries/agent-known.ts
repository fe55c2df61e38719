import { logsIn } from '@/db/scope-sql';
import type { ReadScope } from '@/lib/server/access/request-context';
import { type Query, query } from './read-together';

/** Finds a row if the agent exists, for whoever may read its log. */
export function agentKnown({ scope }: Pick<ReadScope, 'scope'>, agentId: string): Query<true> {
  return query(() => true, `SELECT 1 FROM agents WHERE id = ? AND ${logsIn(scope, 'id')}`, agentId);
}
