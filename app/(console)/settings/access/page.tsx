import type { Metadata } from 'next';
import { visitor } from '@/app/(console)/read-in-turn';
import { AccessPage } from '@/components/settings/access-page';
import { may } from '@/lib/server/access/principal';
import { ForAdmins } from '../for-admins';
import { readFirstCredentials } from '../read-access';

export const metadata: Metadata = { title: 'Access' };

export default async function AccessSettingsPage() {
  const principal = await visitor();
  if (!may(principal, 'administer')) return <ForAdmins />;
  const initial = await readFirstCredentials();
  return <AccessPage initial={initial} ownId={principal.credentialId} />;
}
