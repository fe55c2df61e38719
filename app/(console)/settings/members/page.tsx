import type { Metadata } from 'next';
import { readForPage, readPrincipal } from '@/app/(console)/read-in-turn';
import { providerName } from '@/app/provider-name';
import { MembersPage } from '@/components/settings/members-page';
import { readMembers } from '@/lib/server/access/manage-members';
import { may } from '@/lib/server/access/principal';
import { ForAdmins } from '../for-admins';

export const metadata: Metadata = { title: 'Members' };

export default async function MembersSettingsPage() {
  const principal = await readPrincipal();
  if (!may(principal, 'administer')) return <ForAdmins />;
  // oxlint-disable-next-line react-compiler/purity -- runs once a request, on the server
  const initial = await readForPage((scope) => readMembers(scope, Date.now()));
  return <MembersPage initial={initial} ownId={principal.id} provider={providerName(process.env)} />;
}
