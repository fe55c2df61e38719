import type { Query, QueryClient, QueryKey } from '@tanstack/react-query';
import { comparePositions, type Position } from '@/lib/protocol/position';
import type { RowFrame } from './row-frame';

interface Snapshot {
  position: Position;
}
type Fold<S> = (snapshot: S, frames: RowFrame[]) => S;

/** Of each query that is being loaded: the frames that were folded into what the answer will take the place of. */
const MEANWHILE = new WeakMap<Query, Set<RowFrame[]>>();

/** Folds frames into the snapshot that is there. Those it already holds are dropped: several readers may bring them. */
export function takeFrames<S extends Snapshot>(client: QueryClient, key: QueryKey, fold: Fold<S>, frames: RowFrame[]) {
  client.setQueryData<S>(key, (snapshot) => {
    if (!snapshot) return snapshot;
    const fresh = frames.filter((frame) => comparePositions(frame.id, snapshot.position) > 0);
    if (fresh.length === 0) return snapshot;
    for (const kept of meanwhile(client, key)) for (const frame of fresh) kept.push(frame);
    return fold(snapshot, fresh);
  });
}

/** Loads the snapshot, also again. The answer may be older than what is there: what has come since is folded into it. */
export async function loadSnapshot<S extends Snapshot>(
  client: QueryClient,
  key: QueryKey,
  fold: Fold<S>,
  load: () => Promise<S>,
): Promise<S> {
  const kept: RowFrame[] = [];
  const loads = meanwhile(client, key);
  loads.add(kept);
  try {
    const snapshot = await load();
    const fresh = kept.filter((frame) => comparePositions(frame.id, snapshot.position) > 0);
    return fresh.length === 0 ? snapshot : fold(snapshot, fresh);
  } finally {
    loads.delete(kept);
  }
}

function meanwhile(client: QueryClient, queryKey: QueryKey): Set<RowFrame[]> {
  const query = client.getQueryCache().find({ queryKey });
  const loads = (query && MEANWHILE.get(query)) ?? new Set();
  if (query) MEANWHILE.set(query, loads);
  return loads;
}
