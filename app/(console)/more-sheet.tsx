'use client';

import { CircleHelp, LogOut } from 'lucide';
import type { ReactNode } from 'react';
import { SignOut } from '@/components/live/sign-out';
import { Icon } from '@/components/ui/icon';
import { Link } from '@/components/ui/link';
import { Modal } from '@/components/ui/modal';
import { ShortcutHelp } from '@/components/ui/shortcuts/shortcut-help';
import { ThemeToggle } from '@/components/ui/theme-toggle';

export interface MoreLink {
  href: string;
  label: string;
  icon: ReactNode;
}

const ROW =
  'flex min-h-12 w-full items-center gap-3 rounded-md px-3 text-left text-md hover:bg-raised [&>svg]:size-[18px]';

export function MoreSheet({ links, onClose }: { links: readonly MoreLink[]; onClose: () => void }) {
  return (
    <Modal
      label="More"
      onClose={onClose}
      className="mx-0 mt-auto mb-0 w-full max-w-none rounded-t-xl pb-[env(safe-area-inset-bottom)]"
    >
      <div className="p-3">
        {links.map(({ href, label, icon }) => (
          <Link key={href} href={href} onClick={onClose} className={ROW}>
            {icon}
            {label}
          </Link>
        ))}
        <Link href="/help" onClick={onClose} className={ROW}>
          <Icon of={CircleHelp} size={18} strokeWidth={1.75} /> Help
        </Link>
        <ThemeToggle className={ROW} />
        <ShortcutHelp className={`${ROW} pointer-coarse:hidden`} />
        <SignOut
          label={
            <>
              <Icon of={LogOut} size={18} strokeWidth={1.75} /> Sign out
            </>
          }
          className={ROW}
        />
        <button type="button" onClick={onClose} className="mt-2 h-12 w-full rounded-md border text-ink-2 text-md">
          Close
        </button>
      </div>
    </Modal>
  );
}
