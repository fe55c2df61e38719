import type { Metadata } from 'next';
import { YouPage } from '@/components/settings/you-page';
import { describePrincipal, readOwnSignIns } from '@/lib/server/access/manage-credentials';
import { readForPage, readPrincipal } from '../read-in-turn';
import { adminNames } from './for-admins';

export const metadata: Metadata = { title: 'Settings' };

export default async function SettingsPage() {
  const principal = await readPrincipal();
  // oxlint-disable-next-line react-compiler/purity -- runs once a request, on the server
  const initial = await readForPage((scope) => readOwnSignIns(scope, principal, Date.now()));
  return (
    <YouPage
      me={describePrincipal(principal)}
      initial={initial}
      hint={`To change your role, ask ${await adminNames()}.`}
    />
  );
}
