import type { Metadata } from 'next';
import { readForPage, readPrincipal } from '@/app/(console)/read-in-turn';
import { DatabaseCommands, DatabaseSize, RetentionTable } from '@/components/settings/storage';
import { may } from '@/lib/server/access/principal';
import { readStorage } from '@/lib/server/queries/read-storage';
import { ForAdmins } from '../for-admins';

export const metadata: Metadata = { title: 'Storage' };

/** Longest wait for sizes. Measuring a large database takes seconds. */
const WAIT_MS = 300;

export default async function StorageSettingsPage() {
  const principal = await readPrincipal();
  if (!may(principal, 'administer')) return <ForAdmins />;
  const soon = new Promise<null>((resolve) => setTimeout(resolve, WAIT_MS, null));
  const { sizes, retention } = await readForPage(async ({ reader }, { caches, retention }) => ({
    sizes: await Promise.race([readStorage(reader, Date.now, caches.storage), soon]),
    retention,
  }));
  const initial = sizes && { ...sizes, retention };
  return (
    <div className="space-y-10">
      <DatabaseSize initial={initial} />
      <RetentionTable rules={retention} initial={initial} />
      <DatabaseCommands />
    </div>
  );
}
