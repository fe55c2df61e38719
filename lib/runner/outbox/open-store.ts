import { rename } from 'node:fs/promises';
import { LibsqlError } from '@libsql/client';
import type { Bound } from './append-plan';
import { lostCandidate } from './append-plan';
import type { OutboxClock, OutboxNotice } from './delivery';
import { OutboxStore } from './store';

/**
 * Opens an outbox's file, or a new one in its place when it is damaged.
 *
 * Failure: a damaged file is kept under another name, the new one has a new epoch, and its first record says that
 * something unknown is missing.
 */
export interface StorePlace {
  file: string;
  producerId: string;
  agentId: string;
  bound: Bound;
  clock: OutboxClock;
  onNotice?: (notice: OutboxNotice) => void;
}

/** Nobody can tell how many records a damaged file held: at least one is declared. */
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

/** @param was who wrote the damaged file, as far as that is known */
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

/** Renames the file and what belongs to it: a log of the damaged file must not be read into the new one. */
async function setAside(file: string, now: number): Promise<string> {
  const aside = `${file}.corrupt-${now}`;
  await rename(file, aside);
  for (const suffix of ['-wal', '-shm']) await rename(file + suffix, aside + suffix).catch(() => undefined);
  return aside;
}
