import type { ReactNode } from 'react';
import { SettingsNav } from '@/components/settings/settings-nav';
import { may } from '@/lib/server/access/principal';
import { PageFrame } from '../page-frame';
import { readPrincipal } from '../read-in-turn';

export default async function SettingsLayout({ children }: { children: ReactNode }) {
  const isAdmin = may(await readPrincipal(), 'administer');
  return (
    <PageFrame title="Settings" back={{ href: '/', label: 'Sessions' }}>
      <SettingsNav isAdmin={isAdmin} />
      {children}
    </PageFrame>
  );
}
