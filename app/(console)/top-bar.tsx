'use client';

import { Bot, Inbox } from 'lucide';
import Link from 'next/link';
import { useEffect, useState } from 'react';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { Icon } from '@/components/ui/icon';
import { Logo } from '@/components/ui/logo';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { ShortcutHelp } from '@/components/ui/shortcuts/shortcut-help';
import { whenIdle } from '@/components/ui/when-idle';
import { FleetSummary } from './fleet-summary';

const themeCode = new CodeOnDemand(async () => (await import('@/components/ui/theme-toggle')).ThemeToggle);
const badgeCode = new CodeOnDemand(async () => (await import('@/components/inbox/inbox-badge')).InboxBadge);

/** The name, and what belongs to no page in particular. On the start page it also says how the fleet stands. */
export function TopBar({ home }: { home: boolean }) {
  // It is nothing that the page has to wait for.
  const [isIdle, setIdle] = useState(false);
  useEffect(() => {
    const turn = whenIdle(() => setIdle(true));
    return () => turn.cancel();
  }, []);
  const Title = home ? 'h1' : 'p';
  // On the start page this is within the main part, elsewhere beside it.
  const Bar = home ? 'div' : 'header';
  return (
    <Bar className="flex h-12 shrink-0 items-center gap-4 px-4">
      <Title className="font-medium">
        <Link href="/" className="flex min-h-6 items-center gap-2">
          <Logo />
          <span className="max-[280px]:sr-only">Interlude</span>
        </Link>
      </Title>
      {home && <FleetSummary />}
      <div className="ml-auto flex items-center gap-3">
        {home && <ConnectionBadge />}
        <Link
          href="/inbox"
          title="Inbox"
          className="hit flex h-5 w-10 items-center justify-end text-ink-3 hover:text-ink"
        >
          <Icon of={Inbox} size={15} strokeWidth={1.75} />
          <span className="sr-only">Inbox</span>
          {isIdle && <OnDemand code={badgeCode} name="The count" props={{}} />}
        </Link>
        <Link href="/agents" title="Agents" className="hit grid size-5 place-items-center text-ink-3 hover:text-ink">
          <Icon of={Bot} size={15} strokeWidth={1.75} />
          <span className="sr-only">Agents</span>
        </Link>
        <ShortcutHelp />
        <span className="size-5">{isIdle && <OnDemand code={themeCode} name="The theme" props={{}} />}</span>
      </div>
    </Bar>
  );
}
