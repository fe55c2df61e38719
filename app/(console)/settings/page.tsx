import type { Metadata } from 'next';
import { YouPage } from '@/components/settings/you-page';
import { describePrincipal } from '@/lib/server/access/manage-credentials';
import { visitor } from '../read-in-turn';
import { readFirstSignIns } from './read-access';
import { whomToAsk } from './whom-to-ask';

export const metadata: Metadata = { title: 'Settings' };

export default async function SettingsPage() {
  const principal = await visitor();
  const initial = await readFirstSignIns(principal);
  return <YouPage me={describePrincipal(principal)} initial={initial} ask={`For more, ask ${await whomToAsk()}.`} />;
}
