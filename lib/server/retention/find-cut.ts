import { CUSTOM } from '@interlude/protocol/event-fields';
import type { InStatement } from '@libsql/client';
import { inOrder, type ResultRows } from '@/db/reader';

/** What may go: what stands up to a position, and was received before a time. */
export interface Limit {
  position: number;
  before: number;
}

/** Where a session's log is cut: what began up to there goes. */
export interface Cut {
  agentId: string;
  upTo: number;
  /** How many turns go, without those of kind `none`, and how many have gone before. */
  turns: number;
  turnsBefore: number;
  /** The last message or call that has gone before. */
  lastId: string | null;
}

interface Asking {
  batch(statements: InStatement[]): Promise<ResultRows[]>;
}

/**
 * Most turns that go in one transaction, for which ingest may have to wait. More only where fewer can't go without the
 * others: -1 is all of them.
 */
const TURNS_AT_ONCE = [200, 2_000, -1];

/**
 * Where the log of a session can be cut, at most at `limit`. In front of the cut stands no turn that goes on behind it,
 * and nothing that is open: no turn, no reply that is owed, no request and no command. A task that runs is no reason to
 * keep the turn that started it: its card stays, with all that the task has said.
 *
 * @returns null if nothing can go
 */
export async function findCut(asking: Asking, sessionId: string, limit: Limit): Promise<Cut | null> {
  const [sessions, owed, commands] = await asking.batch([
    {
      sql: `SELECT agent_id, removed_up_to, places->>'$.openTurn.position' AS open_turn,
          ifnull(body->>'$.removed.turns', 0) AS turns_before, body->>'$.removed.lastId' AS last_id,
          (SELECT min(CAST(value->>'$.openedPosition' AS INTEGER)) FROM json_each(memory, '$.fold.pendingRequests')) AS asked,
          memory->>'$.fold.hasMorePending' AS has_more_asked
        FROM sessions WHERE id = ?`,
      args: [sessionId],
    },
    {
      sql: `SELECT min(position) AS position FROM obligations WHERE session_id = ? AND state = 'owed'`,
      args: [sessionId],
    },
    {
      sql: `SELECT min(position) AS position FROM commands WHERE state IN ('queued', 'delivered')
        AND agent_id = (SELECT agent_id FROM sessions WHERE id = ?1) AND session_id = ?1`,
      args: [sessionId],
    },
  ]);
  const session = sessions?.rows[0];
  // of some requests it is not even known where they are
  if (session === undefined || Number(session.has_more_asked ?? 0) === 1) return null;
  const open = [session.open_turn, session.asked, owed?.rows[0]?.position, commands?.rows[0]?.position];
  const firstOpen = Math.min(...open.filter((position) => position != null).map(Number));
  const most = { ...limit, position: Math.min(limit.position, firstOpen - 1) };
  for (const many of TURNS_AT_ONCE) {
    const found = await cutOfMany(asking, sessionId, most, many);
    if (found.upTo > Number(session.removed_up_to) || found.count > 0) {
      const agentId = String(session.agent_id);
      const lastId = session.last_id === null ? null : String(session.last_id);
      return { agentId, upTo: found.upTo, turns: found.told, turnsBefore: Number(session.turns_before), lastId };
    }
  }
  return null;
}

/** The cut behind so many turns, or fewer. */
async function cutOfMany(asking: Asking, sessionId: string, limit: Limit, many: number) {
  const [next] = await asking.batch([
    {
      sql: 'SELECT position FROM turns WHERE session_id = ? ORDER BY position LIMIT 1 OFFSET ?',
      args: [sessionId, many],
    },
  ]);
  const first = many < 0 ? undefined : next?.rows[0]?.position;
  const position = first == null ? limit.position : Math.min(limit.position, Number(first) - 1);
  const cut = await beforeWhatStays(asking, sessionId, { ...limit, position });
  const [turns, events] = await asking.batch([
    {
      sql: `SELECT count(*) AS count, count(*) FILTER (WHERE kind <> 'none') AS told FROM turns
        WHERE session_id = ? AND position <= ?`,
      args: [sessionId, cut],
    },
    {
      sql: `SELECT position FROM events WHERE session_id = ? AND position <= ? AND name IS NOT '${CUSTOM.removed}'
        ORDER BY position DESC LIMIT 1`,
      args: [sessionId, cut],
    },
  ]);
  const [counts] = turns?.rows ?? [];
  return {
    upTo: Number(events?.rows[0]?.position ?? 0),
    count: Number(counts?.count),
    told: Number(counts?.told),
  };
}

/**
 * A turn goes as a whole: with one that goes on behind the cut, all that began after it stays. So it does with one that is
 * too young after all: where the server's clock was once wrong, a position is no time.
 */
async function beforeWhatStays(asking: Asking, sessionId: string, { position, before }: Limit): Promise<number> {
  for (let cut = position; ; ) {
    const [staying] = await asking.batch([
      {
        sql: `SELECT min(position) AS position FROM turns WHERE session_id = ?1 AND position <= ?2 AND (
            EXISTS (SELECT 1 FROM events WHERE session_id = ?1 AND turn_id = turns.id AND position > ?2)
            OR (SELECT received_at FROM events WHERE session_id = ?1 AND turn_id = turns.id
              ORDER BY position DESC LIMIT 1) >= ?3)`,
        args: [sessionId, cut, before],
      },
    ]);
    const first = staying?.rows[0]?.position ?? null;
    if (first === null) return cut;
    cut = Number(first) - 1;
  }
}

/** The same outside a write. */
export function askingOf(reader: { execute(statement: InStatement): Promise<ResultRows> }): Asking {
  return { batch: (statements) => inOrder(statements, (statement) => reader.execute(statement)) };
}
