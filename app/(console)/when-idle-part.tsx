'use client';

import { useEffect, useState } from 'react';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { whenIdle } from '@/components/ui/when-idle';

/** Loads a part of the page when the browser is idle. */
function WhenIdlePart({ code, name }: { code: CodeOnDemand<object>; name: string }) {
  const [isIdle, setIdle] = useState(false);
  useEffect(() => {
    const turn = whenIdle(() => setIdle(true));
    return () => turn.cancel();
  }, []);
  return isIdle && <OnDemand code={code} name={name} props={{}} />;
}

const toolsCode = new CodeOnDemand<object>(async () => (await import('./sidebar-tools')).SidebarTools);

export function SidebarToolsWhenIdle() {
  return <WhenIdlePart code={toolsCode} name="The tools" />;
}

const backgroundCode = new CodeOnDemand<object>(async () => (await import('./background')).Background);

export function BackgroundWhenIdle() {
  return <WhenIdlePart code={backgroundCode} name="The inbox" />;
}
