import type { Metadata } from 'next';
import { readPrincipal } from '@/app/(console)/read-in-turn';
import { ShortcutsPage } from '@/components/settings/shortcuts-page';

export const metadata: Metadata = { title: 'Shortcuts' };

export default async function ShortcutSettingsPage() {
  await readPrincipal();
  return <ShortcutsPage />;
}
