import type { Metadata } from 'next';
import { readPrincipal } from '@/app/(console)/read-in-turn';
import { AppearancePage } from '@/components/settings/appearance-page';

export const metadata: Metadata = { title: 'Appearance' };

export default async function AppearanceSettingsPage() {
  await readPrincipal();
  return <AppearancePage />;
}
