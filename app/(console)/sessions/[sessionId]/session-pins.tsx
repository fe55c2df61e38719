'use client';

import { useMemo } from 'react';
import { findRequest, openRequests } from '@/components/requests/open-requests';
import { PinnedRequests } from '@/components/requests/pinned-requests';
import type { Turn } from '@/lib/protocol/read-models';
import { renderRequest } from '../../render-request';

/** What the agent waits for while its place in the transcript is out of sight. */
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
