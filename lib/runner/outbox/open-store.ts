import { rename } from 'node:fs/promises';
import { LibsqlError } from '@libsql/client';
import type { Bound } from './append-plan';
import { lostCandidate } from './append-plan';
import type { OutboxClock, OutboxNotice } from './delivery';
import { OutboxStore } from './store';

/**
 * Opens the outbox file, or replaces a damaged one.
 *
 * Failure: a damaged file is renamed. Its replacement has a new epoch and begins with a `lost` record.
 */
export interface StorePlace {
  file: string;
  producerId: string;
  agentId: string;
  bound: Bound;
  clock: OutboxClock;
  onNotice?: (notice: OutboxNotice) => void;
}

/** The number of records in a damaged file is unknown, so one loss is declared. */
const UNKNOWN_COUNT = 1;

const CORRUPT = ['SQLITE_CORRUPT', 'SQLITE_NOTADB'];

export async function openStore(place: StorePlace): Promise<OutboxStore> {
  const birth = { producerId: place.producerId, epoch: place.clock.now() };
  try {
    return await OutboxStore.open(place.file, birth, place.bound);
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    return await replaceCorrupt(place, { id: place.producerId, epoch: 0 }, error);
  }
}

/** @param was producer of the damaged file, if known */
export async function replaceCorrupt(
  { file, agentId, bound, clock, onNotice }: StorePlace,
  was: { id: string; epoch: number },
  cause: unknown,
): Promise<OutboxStore> {
  const now = clock.now();
  const aside = await setAside(file, now);
  const store = await OutboxStore.open(file, { producerId: was.id, epoch: Math.max(now, was.epoch + 1) }, bound);
  await store.append(
    [{ candidates: [lostCandidate({ agentId, occurredAt: now }, UNKNOWN_COUNT, 'outbox-corrupt')] }],
    now,
  );
  const reason = cause instanceof Error ? cause.message : String(cause);
  onNotice?.({
    level: 'error',
    kind: 'corrupt',
    file: aside,
    count: UNKNOWN_COUNT,
    message: `the outbox was damaged (${reason}); it is kept as ${aside}`,
  });
  return store;
}

export function isCorrupt(error: unknown): boolean {
  return error instanceof LibsqlError && CORRUPT.some((code) => error.code.startsWith(code));
}

/** Renames the file with its WAL, which must not be replayed into the new file. */
async function setAside(file: string, now: number): Promise<string> {
  const aside = `${file}.corrupt-${now}`;
  await rename(file, aside);
  for (const suffix of ['-wal', '-shm']) await rename(file + suffix, aside + suffix).catch(() => undefined);
  return aside;
}
