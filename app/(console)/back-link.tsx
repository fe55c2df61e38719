'use client';

import { clsx } from 'clsx';
import { ChevronLeft } from 'lucide';
import { usePathname } from 'next/navigation';
import { Icon } from '@/components/ui/icon';
import { Link } from '@/components/ui/link';

/** Leads from a page to the one above. On wide screens, the sidebar has that link. */
export function BackLink(props: { href: string; label: string; className?: string }) {
  const { href, label, className } = props;
  return (
    usePathname() !== href && (
      <Link href={href} className={clsx('hit -ml-1 text-ink-3 hover:text-ink lg:hidden', className)}>
        <Icon of={ChevronLeft} size={17} />
        <span className="sr-only">{label}</span>
      </Link>
    )
  );
}
