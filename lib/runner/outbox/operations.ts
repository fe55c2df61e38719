import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Client, createClient } from '@libsql/client';
import { makePrivate } from '../host/data-folder.mjs';
import { candidateOf } from './append-plan';
import { OUTBOX_VERSION, oldestAt, READ_FILL, READ_IDENTITY, READ_OLDEST } from './statements';

/**
 * Operator commands on outbox files, run in a separate process while a runner may have them open.
 *
 * Ordering: a decision is only recorded in the file. The process that has the outbox open applies it within seconds,
 * otherwise the next one does. So no two processes assign sequence numbers.
 * Failure: nothing is deleted. A discarded record stays in the file with the time of the decision.
 */
export interface OutboxReport {
  file: string;
  producerId: string;
  epoch: number;
  lastSeq: number;
  depth: number;
  bytes: number;
  /** Time of the oldest queued record; null if the queue is empty. */
  oldestAt: number | null;
  poisoned: number;
  redriving: number;
  discarded: number;
  /** Losses declared by queued `lost` records. */
  lost: number;
  /** PID of the process that has the file open, or null. */
  pid: number | null;
}

/** A record that the server rejected permanently. */
export interface PoisonedRow {
  id: number;
  epoch: number;
  seq: number;
  reason: string;
  poisonedAt: number;
  body: string;
  /** `redrive`: to be queued again; `redriven`: queued again. */
  state: PoisonState;
  /** Epoch milliseconds of the decision. */
  decidedAt: number | null;
}

type PoisonState = 'kept' | 'redrive' | 'redriven' | 'discarded';

export async function outboxFiles(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names
    .filter((name) => name.endsWith('.db'))
    .sort()
    .map((name) => join(folder, name));
}

/** @throws Error when the file is not an outbox of this version */
export async function readOutbox(file: string): Promise<OutboxReport> {
  return await withFile(file, async (client) => {
    const [identity, queue, oldest, lost, poisoned] = await client.batch(
      [
        READ_IDENTITY,
        READ_FILL,
        READ_OLDEST,
        "SELECT body FROM queue WHERE kind = 'lost'",
        'SELECT state, count(*) AS rows FROM poisoned GROUP BY state',
      ],
      'read',
    );
    const states = new Map(poisoned?.rows.map((row) => [String(row.state), Number(row.rows)]));
    return {
      file,
      producerId: String(identity?.rows[0]?.producer_id),
      epoch: Number(identity?.rows[0]?.epoch),
      lastSeq: Math.max(Number(identity?.rows[0]?.last_seq), Number(queue?.rows[0]?.seq)),
      depth: Number(queue?.rows[0]?.rows),
      bytes: Number(queue?.rows[0]?.bytes),
      oldestAt: oldestAt(oldest),
      poisoned: states.get('kept') ?? 0,
      redriving: states.get('redrive') ?? 0,
      discarded: states.get('discarded') ?? 0,
      lost: (lost?.rows ?? []).reduce((sum, row) => sum + lostCount(String(row.body)), 0),
      pid: await holder(file),
    };
  });
}

export async function poisonedIn(file: string): Promise<PoisonedRow[]> {
  return await withFile(file, async (client) => {
    const found = await client.execute(
      'SELECT id, epoch, seq, reason, poisoned_at, body, state, decided_at FROM poisoned ORDER BY id',
    );
    return found.rows.map(poisonedRow);
  });
}

export interface Decision {
  /** Ids of the updated records. */
  changed: number[];
  /** Ids that do not exist, are already decided, or can't be sent again. */
  refused: { id: number; why: string }[];
}

/** @param ids `all` selects every undecided record */
export async function decide(
  file: string,
  ids: number[] | 'all',
  to: 'redrive' | 'discarded',
  now: number,
): Promise<Decision> {
  const rows = new Map((await poisonedIn(file)).map((row) => [row.id, row]));
  const wanted = ids === 'all' ? [...rows.values()].filter(({ state }) => state === 'kept').map(({ id }) => id) : ids;
  const decision: Decision = { changed: [], refused: [] };
  for (const id of wanted) {
    const why = objection(rows.get(id), to);
    if (why === null) decision.changed.push(id);
    else decision.refused.push({ id, why });
  }
  if (decision.changed.length > 0) {
    await withFile(file, (client) =>
      client.batch(
        decision.changed.map((id) => ({
          sql: 'UPDATE poisoned SET state = ?, decided_at = ? WHERE id = ? AND state = ?',
          args: [to, now, id, rows.get(id)?.state ?? ''],
        })),
        'write',
      ),
    );
  }
  return decision;
}

function objection(row: PoisonedRow | undefined, to: 'redrive' | 'discarded'): string | null {
  if (row === undefined) return 'there is no such record';
  if (row.state === 'redriven') return 'it has already been sent again';
  if (row.state === to) return to === 'redrive' ? 'it is about to be sent again' : 'it is already discarded';
  if (to === 'discarded') return null;
  if (row.reason === 'record-too-large') return 'it is too large for any request';
  // if queued now, it would replace a newer status on the server
  if (candidateOf(row.body).kind === 'status') return 'it is an old status report, and newer ones have replaced it';
  return null;
}

function poisonedRow(row: Record<string, unknown>): PoisonedRow {
  return {
    id: Number(row.id),
    epoch: Number(row.epoch),
    seq: Number(row.seq),
    reason: String(row.reason),
    poisonedAt: Number(row.poisoned_at),
    body: String(row.body),
    state: String(row.state) as PoisonState,
    decidedAt: row.decided_at === null ? null : Number(row.decided_at),
  };
}

async function withFile<Result>(file: string, work: (client: Client) => Promise<Result>): Promise<Result> {
  const client = createClient({ url: `file:${file}`, concurrency: 1 });
  try {
    await client.execute('PRAGMA busy_timeout = 2000');
    const version = Number((await client.execute('PRAGMA user_version')).rows[0]?.user_version);
    if (version !== OUTBOX_VERSION)
      throw new Error(`${file} is not an outbox of this version (${version}); use the version that wrote it`);
    return await work(client);
  } finally {
    client.close();
  }
}

/** PID recorded in the lock file, if alive. Reads without taking the lock, which could block a runner. */
async function holder(file: string): Promise<number | null> {
  makePrivate(`${file}.lock`);
  const client = createClient({ url: `file:${file}.lock`, concurrency: 1 });
  try {
    const pid = Number((await client.execute('SELECT pid FROM holder')).rows[0]?.pid ?? 0);
    if (pid <= 0) return null;
    process.kill(pid, 0);
    return pid;
  } catch {
    return null;
  } finally {
    client.close();
  }
}

function lostCount(body: string): number {
  return Number((JSON.parse(body) as { lost?: { count?: number } }).lost?.count ?? 1);
}
