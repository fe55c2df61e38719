'use client';

import { useEffect, useState } from 'react';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { whenIdle } from '@/components/ui/when-idle';

const badgeCode = new CodeOnDemand(async () => (await import('@/components/inbox/inbox-badge')).InboxBadge);

/** How many items need somebody. It is nothing that the page has to wait for. */
export function InboxCount() {
  const [isIdle, setIdle] = useState(false);
  useEffect(() => {
    const turn = whenIdle(() => setIdle(true));
    return () => turn.cancel();
  }, []);
  return isIdle && <OnDemand code={badgeCode} name="The count" props={{}} />;
}
