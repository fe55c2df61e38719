'use client';

import { useEffect, useEffectEvent } from 'react';
import type { Position } from '@/lib/protocol/position';
import type { TopicListener } from './live-client';
import { useLiveClient } from './live-provider';

/**
 * Listens to a topic from `after` on. `after` is read when the subscription begins; while it is null there is none.
 * To begin again elsewhere (after `reset`), let it be null once.
 */
export function useTopic(topic: string | null, after: Position | null, listener: TopicListener): void {
  const live = useLiveClient();
  const onFrames = useEffectEvent(listener.frames);
  const onReset = useEffectEvent(listener.reset);
  const start = useEffectEvent(() => after as Position);
  const ready = after !== null;

  useEffect(() => {
    if (topic === null || !ready) return;
    return live().subscribe(topic, start(), {
      frames: (frames) => onFrames(frames),
      reset: () => onReset(),
    });
  }, [live, topic, ready]);
}
