import type { Metadata } from 'next';
import { visitor } from '@/app/(console)/read-in-turn';
import { providerName } from '@/app/provider-name';
import { MembersPage } from '@/components/settings/members-page';
import { may } from '@/lib/server/access/principal';
import { ForAdmins } from '../for-admins';
import { readFirstMembers } from '../read-access';

export const metadata: Metadata = { title: 'Members' };

export default async function MembersSettingsPage() {
  const principal = await visitor();
  if (!may(principal, 'administer')) return <ForAdmins />;
  const initial = await readFirstMembers();
  return <MembersPage initial={initial} ownId={principal.id} provider={providerName(process.env)} />;
}
