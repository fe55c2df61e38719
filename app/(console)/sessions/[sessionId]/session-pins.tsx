'use client';

import type { Turn } from '@interlude/protocol/read-models';
import { useMemo } from 'react';
import { renderRequest } from '@/app/(console)/render-request';
import { findRequest, openRequests, PinnedRequests } from '@/components/requests/pinned-requests';

/** Open requests that are out of sight in the transcript. */
export function SessionPins({ turns, openCount }: { turns: readonly Turn[]; openCount: number }) {
  const requests = useMemo(() => openRequests(turns, openCount), [turns, openCount]);
  return (
    <PinnedRequests
      requests={requests}
      find={(item) => findRequest(turns, item)}
      renderRequest={(item, onDismiss) => renderRequest(item, { onDismiss })}
    />
  );
}
