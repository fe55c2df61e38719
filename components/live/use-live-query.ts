'use client';

import { type QueryKey, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Position } from '@/lib/protocol/position';
import { loadSnapshot, takeFrames } from './live-snapshot';
import type { RowFrame } from './row-frame';
import { useTopic } from './use-topic';

/**
 * A snapshot that the stream keeps current.
 *
 * Ordering: the topic is read after the snapshot's own position, and frames the snapshot already holds are dropped, so
 * that several readers of one key, or a reload in between, count nothing twice. Frames that come while the snapshot is
 * loaded again are folded into the answer too, which may have been read before them.
 * Failure: after a gap the snapshot is loaded again; what is on screen stays until it is there.
 *
 * @param fold gives the snapshot after some frames, and moves its `position` to the last of them
 */
export function useLiveQuery<Snapshot extends { position: Position }>(options: {
  key: QueryKey;
  topic: string;
  load: (signal: AbortSignal) => Promise<Snapshot>;
  initial?: Snapshot;
  /** Shown until the snapshot is loaded, where the whole is too much to come with the page. */
  preview?: Snapshot;
  fold: (snapshot: Snapshot, frames: RowFrame[]) => Snapshot;
  enabled?: boolean;
}) {
  const { key, topic, load, initial, preview, fold, enabled = true } = options;
  const queryClient = useQueryClient();
  const [reloading, setReloading] = useState(false);
  const query = useQuery<Snapshot>({
    queryKey: key,
    queryFn: ({ signal }) => loadSnapshot(queryClient, key, fold, () => load(signal)),
    initialData: initial,
    enabled,
  });

  useTopic(enabled ? topic : null, reloading ? null : (query.data?.position ?? null), {
    frames(frames) {
      takeFrames(queryClient, key, fold, frames);
    },
    reset() {
      setReloading(true);
      query.refetch({ cancelRefetch: false }).finally(() => setReloading(false));
    },
  });
  return { ...query, data: query.data ?? preview };
}
