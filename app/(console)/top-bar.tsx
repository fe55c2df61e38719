'use client';

import type { ReactNode } from 'react';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { Logo } from '@/components/ui/icon';
import { Link } from '@/components/ui/link';
import { CodeOnDemand } from '@/components/ui/on-demand';
import { ShortcutHelp } from '@/components/ui/shortcuts/shortcut-help';
import { FleetSummary } from './fleet-summary';
import { WhenIdlePart } from './when-idle-part';

const themeCode = new CodeOnDemand<object>(async () => (await import('@/components/ui/theme-toggle')).ThemeToggle);

/**
 * The logo and the links of every page. The start page adds a summary of the fleet.
 */
export function TopBar({ home, links }: { home: boolean; links: ReactNode }) {
  const Title = home ? 'h1' : 'p';
  // On the start page, the bar is inside `main`.
  const Bar = home ? 'div' : 'header';
  return (
    <Bar className="flex h-12 shrink-0 items-center gap-4 px-4">
      <Title className="font-medium">
        <Link href="/" className="flex min-h-6 items-center gap-2">
          <Logo />
          <span className="max-[340px]:sr-only">Interlude</span>
        </Link>
      </Title>
      {home && <FleetSummary />}
      <div className="ml-auto flex items-center gap-3 max-sm:gap-1.5">
        {home && <ConnectionBadge />}
        {links}
        <ShortcutHelp />
        <span className="size-5">
          <WhenIdlePart code={themeCode} name="The theme" />
        </span>
      </div>
    </Bar>
  );
}
