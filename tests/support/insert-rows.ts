import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { InStatement } from '@libsql/client';
import type { Database } from '@/db/client';

/** Rows put into the log by hand, for tests of reading alone. Positions follow the order of the rows. */
export type TestRow =
  | { event: AgUiEvent; sessionId?: string }
  | { log: string; agentId?: string }
  | { session: string; title?: string }
  | { task: string; description?: string };

/** Commits rows as ingest does, in one transaction. @returns the position of each. */
export function insertRows(database: Database, rows: readonly TestRow[]): Promise<number[]> {
  return database.writes.run(async (transaction) => {
    const { rows: counter } = await transaction.execute('SELECT position FROM counter');
    const first = Number(counter[0]?.position ?? 0) + 1;
    const positions = rows.map((_, index) => first + index);
    await transaction.batch(rows.map((row, index) => insertion(row, first + index)));
    await transaction.execute({
      sql: 'INSERT INTO counter (id, position) VALUES (1, ?1) ON CONFLICT DO UPDATE SET position = ?1',
      args: [first + rows.length - 1],
    });
    return positions;
  });
}

/** `count` text deltas of one session. */
export function deltas(count: number, sessionId = 's1', text = 'x'): TestRow[] {
  return Array.from({ length: count }, () => ({
    sessionId,
    event: { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: text },
  }));
}

function insertion(row: TestRow, position: number): InStatement {
  if ('event' in row) {
    return {
      sql: `INSERT INTO events (position, session_id, agent_id, producer_id, epoch, seq, occurred_at, received_at, type, entity_id, payload)
        VALUES (?, ?, 'a1', 'p1', 1, ?, 1000, 1001, ?, ?, ?)`,
      args: [
        position,
        row.sessionId ?? 's1',
        position,
        row.event.type,
        typeof row.event.messageId === 'string' ? row.event.messageId : null,
        JSON.stringify(row.event),
      ],
    };
  }
  if ('log' in row) {
    return {
      sql: `INSERT INTO log_lines (position, agent_id, occurred_at, received_at, level, component, message, line)
        VALUES (?1, ?2, 1000, 1001, 'info', 'test', ?3,
          (SELECT count(*) + 1 FROM log_lines WHERE agent_id = ?2))`,
      args: [position, row.agentId ?? 'a1', row.log],
    };
  }
  if ('session' in row) {
    return {
      sql: `INSERT OR REPLACE INTO sessions (id, agent_id, state, last_event_at, body, places, updated_position)
        VALUES (?, 'a1', 'idle', 1000, ?, '{}', ?)`,
      args: [row.session, JSON.stringify({ title: row.title ?? null }), position],
    };
  }
  return {
    sql: `INSERT INTO tasks (session_id, position, id, agent_id, status, body, updated_position)
      VALUES ('s1', ?, ?, 'a1', 'running', ?, ?)`,
    args: [position, row.task, JSON.stringify({ id: row.task, description: row.description ?? '' }), position],
  };
}
