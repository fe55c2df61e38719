'use client';

import { useEffect, useState } from 'react';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { whenIdle } from '@/components/ui/when-idle';

/** Loads a part of the page when the browser is idle. */
export function WhenIdlePart({ code, name }: { code: CodeOnDemand<object>; name: string }) {
  const [isIdle, setIdle] = useState(false);
  useEffect(() => {
    const turn = whenIdle(() => setIdle(true));
    return () => turn.cancel();
  }, []);
  return isIdle && <OnDemand code={code} name={name} props={{}} />;
}

const badgeCode = new CodeOnDemand<object>(async () => (await import('@/components/inbox/inbox-badge')).InboxBadge);

/** The number of unseen inbox items. */
export function InboxCount() {
  return <WhenIdlePart code={badgeCode} name="The count" />;
}
