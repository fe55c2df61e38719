import type { Metadata } from 'next';
import { readForPage, readPrincipal } from '@/app/(console)/read-in-turn';
import { AccessPage } from '@/components/settings/access-page';
import { readCredentials } from '@/lib/server/access/manage-credentials';
import { may } from '@/lib/server/access/principal';
import { ForAdmins } from '../for-admins';

export const metadata: Metadata = { title: 'Access' };

export default async function AccessSettingsPage() {
  const principal = await readPrincipal();
  if (!may(principal, 'administer')) return <ForAdmins />;
  // oxlint-disable-next-line react-compiler/purity -- runs once a request, on the server
  const initial = await readForPage((scope) => readCredentials(scope, Date.now()));
  return <AccessPage initial={initial} ownId={principal.credentialId} />;
}
