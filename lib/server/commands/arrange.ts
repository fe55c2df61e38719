import type { Arrange, Retire, RetireResponse } from '@interlude/protocol/commands';
import type { Arrangement, ArrangementResponse } from '@interlude/protocol/read-models';
import type { SessionState } from '@interlude/protocol/session-states';
import { columnText } from '@/db/table-rows';
import type { WriteTransaction } from '@/db/writes';
import type { RequestContext, ServerContext } from '@/lib/server/access/request-context';
import { appendFacts } from '@/lib/server/ingest/append-facts';
import { conflict, requireAgent, requireSession } from './accept-command';

/**
 * `PUT /sessions/:id/arrangement`: names, pins or archives a session, or marks its state as seen.
 *
 * @returns the arrangement; idempotent
 * @throws AppError `not_found`
 */
export async function putArrangement(
  { ids: { sessionId }, body }: RequestContext<'sessionId', { body: Arrange }>,
  server: ServerContext,
): Promise<ArrangementResponse> {
  const now = server.now();
  return server.database.writes.run(async (transaction) => {
    const session = await requireSession(transaction, sessionId);
    const { id, agentId, arrangement: before, updatedPosition } = session;
    const arrangement = rearrange(before, body, now);
    if (JSON.stringify(arrangement) === JSON.stringify(before)) return { arrangement, position: updatedPosition };
    const fact = { kind: 'session-arranged', agentId, sessionId: id, arrangement } as const;
    return { arrangement, position: (await appendFacts(transaction, now, [fact])) ?? updatedPosition };
  });
}

function rearrange(before: Arrangement, { name, pinned, archived, seenState }: Arrange, now: number): Arrangement {
  const since = (isSet: boolean | undefined, at: number | null) =>
    isSet === undefined ? at : isSet ? (at ?? now) : null;
  return {
    name: name === undefined ? before.name : name?.trim() || null,
    pinnedAt: since(pinned, before.pinnedAt),
    archivedAt: since(archived, before.archivedAt),
    seenState: seenState === undefined ? before.seenState : seenState,
  };
}

const ACTIVE = ['starting', 'working', 'needs-input', 'waiting-on-background'] as const satisfies SessionState[];

/** Counts active sessions, except those whose runner is away, because their state is unknown. */
async function countActive(transaction: WriteTransaction, agentId: string): Promise<number> {
  const { rows } = await transaction.execute({
    sql: `SELECT count(*) AS active FROM sessions WHERE agent_id = ?1 AND NOT has_ended AND NOT is_away
          AND state IN (SELECT value FROM json_each(?2))`,
    args: [columnText(agentId), JSON.stringify(ACTIVE)],
  });
  return Number(rows[0]?.active);
}

/**
 * `PUT /agents/:id/retirement`: retires an agent that is not coming back, or restores it. The agent's next sign of life
 * also restores it.
 *
 * @returns the retirement; idempotent
 * @throws AppError `not_found`, `conflict`: `agent_connected`, `agent_at_work`
 */
export async function putRetirement(
  { ids: { agentId }, body: { retired } }: RequestContext<'agentId', { body: Retire }>,
  server: ServerContext,
): Promise<RetireResponse> {
  const now = server.now();
  return server.database.writes.run(async (transaction) => {
    const { id, retiredAt, connection, updatedPosition } = await requireAgent(transaction, agentId);
    if (retired === (retiredAt !== null)) return { retiredAt, position: updatedPosition };
    if (retired && connection === 'connected') {
      throw conflict('agent_connected', 'The runner of this agent is connected. Stop it first, then retire the agent.');
    }
    const active = retired ? await countActive(transaction, id) : 0;
    if (active > 0) {
      throw conflict(
        'agent_at_work',
        `The agent has ${active} active ${active === 1 ? 'session' : 'sessions'}. Wait until it is idle, or interrupt it, then retire it.`,
        { sessions: active },
      );
    }
    const fact = { kind: 'agent-retired', agentId: id, retiredAt: retired ? now : null } as const;
    const position = await appendFacts(transaction, now, [fact]);
    return { retiredAt: fact.retiredAt, position: position ?? updatedPosition };
  });
}
