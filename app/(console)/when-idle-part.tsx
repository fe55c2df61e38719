'use client';

import { useEffect, useState } from 'react';
import { useStored } from '@/components/ui/browser-storage';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { VIEWS_KEY } from '@/components/ui/storage-key';
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

const viewsCode = new CodeOnDemand<object>(async () => (await import('@/components/agents/saved-views')).SavedViews);

/** Links to the saved views of the board. An inline script has reserved their height, see `--views`. */
export function SidebarViews() {
  const [stored] = useStored(VIEWS_KEY);
  if (stored === '[]') return null;
  return (
    <li className="saved-views icons:hidden">
      {stored !== null && <OnDemand code={viewsCode} name="Views" props={{}} />}
    </li>
  );
}

const backgroundCode = new CodeOnDemand<object>(async () => (await import('./background')).Background);

export function BackgroundWhenIdle() {
  return <WhenIdlePart code={backgroundCode} name="The inbox" />;
}
