'use client';

import { Bot, Inbox } from 'lucide';
import Link from 'next/link';
import { useEffect, useState } from 'react';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { useFleet } from '@/components/live/use-fleet';
import { needsLook } from '@/components/sessions/session-words';
import { Icon } from '@/components/ui/icon';
import { Logo } from '@/components/ui/logo';
import { useServerNow } from '@/components/ui/now';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { ShortcutHelp } from '@/components/ui/shortcuts/shortcut-help';
import { ThemeToggle } from '@/components/ui/theme-toggle';
import { whenIdle } from '@/components/ui/when-idle';

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
        <ThemeToggle />
      </div>
    </Bar>
  );
}

/** `2 need you · 3 working · 4 tasks running`. What is zero is not said, nor what is known only of a part. */
function FleetSummary() {
  const list = useFleet(({ listedSessions }) => listedSessions);
  const urgent = useServerNow((now) => list?.sessions.filter((session) => needsLook(session, now)).length ?? 0);
  if (list === undefined || list.sessions.length === 0) return null;
  const { sessions, counts, next } = list;
  const needing = next === null ? urgent : counts.failed + counts['needs-input'];
  const working = counts.working;
  const tasks = sessions.reduce((sum, { away, runningTaskCount }) => sum + (away === null ? runningTaskCount : 0), 0);
  const parts = [
    needing > 0 && `${needing.toLocaleString('en')} ${needing === 1 ? 'needs' : 'need'} you`,
    working > 0 && `${working.toLocaleString('en')} working`,
    next === null && tasks > 0 && `${tasks} ${tasks === 1 ? 'task' : 'tasks'} running`,
  ].filter((part) => part !== false);
  return <p className="tabular hidden truncate text-ink-3 text-xs sm:block">{parts.join(' · ')}</p>;
}
