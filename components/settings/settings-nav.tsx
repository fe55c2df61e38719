'use client';

import { clsx } from 'clsx';
import { usePathname } from 'next/navigation';
import { Link } from '@/components/ui/link';

const PAGES = [
  { href: '/settings', name: 'You', isForAdmins: false },
  { href: '/settings/access', name: 'Access', isForAdmins: true },
  { href: '/settings/members', name: 'Members', isForAdmins: true },
  { href: '/settings/audit', name: 'Audit', isForAdmins: true },
  { href: '/settings/storage', name: 'Storage', isForAdmins: true },
  { href: '/settings/api', name: 'API', isForAdmins: false },
] as const;

/** Links between the settings pages. Only admins see admin pages. */
export function SettingsNav({ isAdmin }: { isAdmin: boolean }) {
  const path = usePathname();
  const shown = PAGES.filter(({ isForAdmins }) => isAdmin || !isForAdmins);
  const isHere = (href: string) => path === href || (href !== '/settings' && path.startsWith(`${href}/`));
  return (
    <nav aria-label="Settings" className="mb-6 flex gap-x-5 border-line border-b sm:gap-x-6">
      {shown.map(({ href, name }) => (
        <Link
          key={href}
          href={href}
          aria-current={isHere(href) ? 'page' : undefined}
          className={clsx(
            '-mb-px border-b py-2',
            isHere(href) ? 'border-ink text-ink' : 'border-transparent text-ink-3 hover:text-ink',
          )}
        >
          {name}
        </Link>
      ))}
    </nav>
  );
}
