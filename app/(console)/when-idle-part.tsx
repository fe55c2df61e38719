'use client';

import { useEffect, useState } from 'react';
import { type CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { whenIdle } from '@/components/ui/when-idle';

/** A part that the page does not wait for: it comes once there is nothing else to do. */
export function WhenIdlePart({ code, name }: { code: CodeOnDemand<object>; name: string }) {
  const [isIdle, setIdle] = useState(false);
  useEffect(() => {
    const turn = whenIdle(() => setIdle(true));
    return () => turn.cancel();
  }, []);
  return isIdle && <OnDemand code={code} name={name} props={{}} />;
}
