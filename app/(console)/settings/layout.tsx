import type { ReactNode } from 'react';
import { SettingsNav } from '@/components/settings/settings-nav';
import { may } from '@/lib/server/access/principal';
import { PageFrame } from '../page-frame';
import { readPrincipal } from '../read-in-turn';

export default async function SettingsLayout({ children }: { children: ReactNode }) {
  const isAdmin = may(await readPrincipal(), 'administer');
  return (
    <PageFrame title="Settings" back={{ href: '/settings', label: 'Settings' }} wide>
      <div className="@container max-w-[1240px]">
        <div className="grid gap-x-8 @4xl:-ml-2 @4xl:grid-cols-[10.5rem_minmax(0,1fr)] [&>*]:min-w-0">
          <SettingsNav isAdmin={isAdmin} />
          <div>{children}</div>
        </div>
      </div>
    </PageFrame>
  );
}
