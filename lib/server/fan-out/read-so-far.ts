import { type Step, TextSoFar } from '@interlude/protocol/redaction/event-redactor';
import { columnText } from '@/db/column-text';
import { Pace } from '@/db/next-turn';
import type { Reader } from '@/db/reader';
import type { EventRow } from '@/lib/server/event-log/rows';

/** How much is read at once. */
const PAGE = 500;

/**
 * What has come of something that streams, up to and with an event of it.
 *
 * @returns null if that event is not there any more: it was folded into a later one, which has all of it
 */
export async function readSoFar(
  reader: Pick<Reader, 'execute'>,
  { sessionId, position, turnId }: Pick<EventRow, 'sessionId' | 'position' | 'turnId'>,
  { key, id }: Step,
): Promise<TextSoFar | null> {
  const which = key.startsWith('output ')
    ? `INDEXED BY events_of_output WHERE name = 'task:output' AND`
    : `INDEXED BY events_by_entity WHERE entity_id IS NOT NULL AND type <> 'CUSTOM' AND`;
  const soFar = new TextSoFar(key);
  const pace = new Pace();
  for (let after = 0; ; ) {
    const { rows } = await reader.execute({
      sql: `SELECT position, occurred_at, payload FROM events ${which} session_id = ? AND entity_id = ?
        AND position > ? AND position <= ? AND turn_id IS ? ORDER BY position LIMIT ${PAGE}`,
      args: [columnText(sessionId), columnText(id), after, position, turnId],
    });
    for (const row of rows) {
      soFar.add(JSON.parse(String(row.payload)), Number(row.occurred_at));
      if (pace.isDue) await pace.rest();
    }
    const last = rows.at(-1);
    if (rows.length === PAGE && last !== undefined) after = Number(last.position);
    else return rows.length > 0 && Number(last?.position) === position ? soFar : null;
  }
}
