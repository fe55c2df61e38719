'use client';

import type { FleetCounts } from '@interlude/protocol/inbox';
import { clsx } from 'clsx';
import { usePathname } from 'next/navigation';
import type { ReactNode } from 'react';
import { useCounts } from '@/components/live/use-counts';
import { Link } from '@/components/ui/link';
import { type PageShortcut, useKeyLabels } from '@/components/ui/shortcuts/use-shortcuts';

/** Numbers beside the links. */
const COUNT = {
  needsYou: ({ needsYou }: FleetCounts) => needsYou,
  sessions: ({ sessions }: FleetCounts) => Object.values(sessions).reduce((sum, count) => sum + count, 0),
  agents: ({ agents }: FleetCounts) => agents,
};
export type CountName = keyof typeof COUNT;

const LOOK = {
  row: 'flex h-8 gap-2.5 rounded-md px-[10px] pointer-coarse:h-11 hover:bg-raised/60 [&[aria-current]]:bg-raised',
  tab: 'flex flex-col justify-center gap-0.5 text-2xs',
};

/** A link of the navigation with its count. `row`: in the sidebar, with its shortcut. `tab`: in the bottom bar. */
export function NavLink(props: {
  href: string;
  label: string;
  shortcut?: PageShortcut;
  count?: CountName;
  look: keyof typeof LOOK;
  /** The icon. */
  children: ReactNode;
}) {
  const { href, label, shortcut, count, look, children } = props;
  const path = usePathname();
  const counts = useCounts();
  const number = counts && count && (COUNT[count](counts) || undefined)?.toLocaleString('en');
  const isNews = count === 'needsYou';
  const [key] = useKeyLabels(shortcut ?? 'help');
  const isBelow = path.startsWith(href === '/' ? '/sessions/' : `${href}/`);
  const isRow = look === 'row';
  return (
    <Link
      href={href}
      aria-current={path === href ? 'page' : isBelow ? 'true' : undefined}
      aria-description={isNews ? undefined : number}
      className={clsx('relative items-center text-ink-2 hover:text-ink [&[aria-current]]:text-ink', LOOK[look])}
    >
      {children}
      <span className={clsx(isRow && 'flex flex-1 items-center justify-between gap-2 icons:tip icons:tip-beside')}>
        {label}
        {shortcut && <span data-key={key} aria-hidden="true" className="key text-2xs text-ink-3 icons:text-inherit" />}
      </span>
      {(isRow || number) && (
        <span
          aria-hidden="true"
          className={clsx(
            'tabular text-2xs text-ink-3',
            isRow ? 'min-w-8 text-right' : 'absolute top-1 left-[calc(50%+12px)]',
            isRow && (isNews ? 'icons:absolute icons:-top-1.5 icons:-right-1' : 'icons:hidden'),
          )}
        >
          <span className={clsx(isNews && number && 'rounded-full bg-waiting px-1.5 py-px font-medium text-ground')}>
            {number}
          </span>
        </span>
      )}
      {isNews && number && <span className="sr-only"> new: {number}</span>}
    </Link>
  );
}
