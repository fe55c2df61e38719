import type { AuditCheck, AuditPage, AuditRemoved } from '@interlude/protocol/access';
import { toAbortError } from '@interlude/protocol/errors';
import type { AuditQuery } from '@interlude/protocol/queries';
import type { Database } from '@/db/client';
import { columnText } from '@/db/table-rows';
import { Yielder } from '@/db/yield-to-loop';
import {
  AUDIT_COLUMNS,
  auditFromRow,
  GENESIS_HASH,
  hashOf,
  removedFromRow,
  removedUpTo,
  SELECT_REMOVED,
} from './audit';
import type { RequestContext, ResponseCaches, ServerContext } from './request-context';
import { abortableBody } from './streamed-response';

const READ_AT_ONCE = 500;

export async function getAudit(
  { query, request, principal }: RequestContext<never, { query: AuditQuery }>,
  { database }: ServerContext,
): Promise<AuditPage> {
  return database.reads.run(principal.credentialId, () => readAudit(database, query), { signal: request.signal });
}

export async function readAudit({ reader }: Pick<Database, 'reader'>, query: AuditQuery): Promise<AuditPage> {
  const { limit } = query;
  const { sql, args } = conditionOf(query);
  const [start, page] = await reader.batch(
    [
      SELECT_REMOVED,
      {
        sql: `SELECT ${AUDIT_COLUMNS} FROM audit WHERE ${sql} ORDER BY number DESC LIMIT ?`,
        args: [...args, limit + 1],
      },
    ],
    'read',
  );
  const { rows = [] } = page ?? {};
  const entries = await new Yielder().map(rows.slice(0, limit), auditFromRow);
  const next = rows.length > limit ? (entries.at(-1)?.number ?? null) : null;
  return { entries, next, removed: removedFromRow(start?.rows[0]) };
}

/** Every distinct action. Skips through the index instead of scanning the table. */
export async function readAuditActions({ reader }: Pick<Database, 'reader'>): Promise<string[]> {
  const { rows } = await reader.execute(`WITH RECURSIVE each(action) AS (
      SELECT min(action) FROM audit
      UNION ALL SELECT (SELECT min(action) FROM audit WHERE action > each.action) FROM each WHERE action IS NOT NULL
    ) SELECT action FROM each WHERE action IS NOT NULL`);
  return rows.map(({ action }) => String(action));
}

function conditionOf({ before, actor, action, agent, session, credential, result }: AuditQuery) {
  const parts = [['number < ?', before ?? Number.MAX_SAFE_INTEGER] as const];
  const conditions: (readonly [string, string | number])[] = [...parts];
  const named = { actor, action, agent_id: agent, session_id: session, credential_id: credential, result };
  for (const [column, value] of Object.entries(named)) {
    if (value !== null) conditions.push([`${column} = ?`, columnText(value)]);
  }
  return { sql: conditions.map(([sql]) => sql).join(' AND '), args: conditions.map(([, value]) => value) };
}

/** Number and hash of the last entry that retention removed. */
const REMOVED_HEADER = 'x-interlude-audit-removed';

/** `GET /audit/export`: every matching entry as JSON lines, oldest first. */
export async function getAuditExport(
  { query, principal, whenOver }: RequestContext<never, { query: AuditQuery }>,
  { database }: ServerContext,
): Promise<Response> {
  const { sql, args } = conditionOf(query);
  const client = principal.credentialId;
  const { rows: start } = await database.reads.run(client, () => database.reader.execute(SELECT_REMOVED));
  const removed = removedFromRow(start[0]);
  const encoder = new TextEncoder();
  let after = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = () =>
        database.reader.execute({
          sql: `SELECT ${AUDIT_COLUMNS} FROM audit WHERE ${sql} AND number > ? ORDER BY number LIMIT ${READ_AT_ONCE}`,
          args: [...args, after],
        });
      const { rows } = await database.reads.run(client, read, { continues: true }).catch((error) => {
        throw toAbortError(error);
      });
      const entries = await new Yielder().map(rows, auditFromRow);
      if (entries.length === 0) return controller.close();
      after = entries.at(-1)?.number ?? after;
      controller.enqueue(encoder.encode(entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')));
    },
  });
  return new Response(abortableBody(body, whenOver), {
    headers: {
      'content-type': 'application/x-ndjson',
      'content-disposition': 'attachment; filename="interlude-audit.jsonl"',
      'cache-control': 'no-store',
      ...(removed === null ? {} : { [REMOVED_HEADER]: `${removed.upTo} ${removed.hash}` }),
    },
  });
}

/**
 * `GET /audit/check`: verifies the whole retained chain. A long-lived process runs one check at a time; concurrent
 * requests share its result.
 */
export async function getAuditCheck(
  { principal }: RequestContext,
  { database, caches }: { database: Database; caches: ResponseCaches },
): Promise<AuditCheck> {
  return caches.auditCheck.get(
    () => performance.now(),
    () => checkAudit(database, principal.credentialId),
    () => 0,
  );
}

/**
 * Verifies the chain from the first retained entry. Accepts a removal only if an entry in the chain records it. Yields
 * to the event loop.
 */
export async function checkAudit(database: Pick<Database, 'reader' | 'reads'>, client = ''): Promise<AuditCheck> {
  const yielder = new Yielder();
  let [entries, head, after, recordedUpTo] = [0, GENESIS_HASH, 0, 0];
  for (;;) {
    // one snapshot: retention may remove entries between the reads
    const read = () =>
      database.reader.batch(
        [
          SELECT_REMOVED,
          {
            sql: `SELECT ${AUDIT_COLUMNS} FROM audit WHERE number > ? ORDER BY number LIMIT ${READ_AT_ONCE}`,
            args: [after],
          },
        ],
        'read',
      );
    const [start, page] = await database.reads.run(client, read, { continues: true });
    const removed: AuditRemoved | null = removedFromRow(start?.rows[0]);
    if (removed !== null && removed.upTo > after) [head, after] = [removed.hash, removed.upTo];
    const { rows = [] } = page ?? {};
    if (rows.length === 0) {
      const isRecorded = removed === null || recordedUpTo >= removed.upTo;
      return { entries, head, brokenAt: isRecorded ? null : removed.upTo + 1, removed };
    }
    for (const row of rows) {
      if (yielder.isDue) await yielder.yieldIfDue();
      const entry = auditFromRow(row);
      const { hash, ...rest } = entry;
      if (entry.number !== after + 1 || hashOf(rest, head) !== hash) {
        return { entries, head, brokenAt: after + 1, removed };
      }
      recordedUpTo = Math.max(recordedUpTo, removedUpTo(entry));
      [entries, head, after] = [entries + 1, hash, entry.number];
    }
  }
}
