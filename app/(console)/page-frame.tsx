import { clsx } from 'clsx';
import { ChevronLeft } from 'lucide';
import type { ReactNode } from 'react';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { Icon } from '@/components/ui/icon';
import { Link } from '@/components/ui/link';
import { Name } from '@/components/ui/name';
import { SettingsLink } from './settings-link';

/** A page with a title, a back link and the connection state. */
export function PageFrame(props: {
  title: string;
  back: { href: string; label: string };
  /** For a table with many columns. */
  wide?: boolean;
  children: ReactNode;
}) {
  const { title, back, wide = false, children } = props;
  return (
    <main className="h-full overflow-y-auto">
      <header className="sticky top-0 z-10 flex h-12 items-center gap-3 border-line border-b bg-ground px-4 sm:px-6">
        <Link href={back.href} className="hit -ml-1 text-ink-3 hover:text-ink">
          <Icon of={ChevronLeft} size={17} />
          <span className="sr-only">{back.label}</span>
        </Link>
        <h1 className="min-w-0 flex-1 truncate font-medium text-md">
          <Name text={title} />
        </h1>
        <ConnectionBadge />
        {/* On wide screens, the link is above the list of sessions. */}
        <span className="flex lg:hidden">
          <SettingsLink />
        </span>
      </header>
      <div className={clsx('px-4 py-5 sm:px-6', wide ? 'max-w-[1560px]' : 'max-w-[1080px]')}>{children}</div>
    </main>
  );
}
