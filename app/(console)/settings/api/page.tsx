import type { Metadata } from 'next';
import { headers } from 'next/headers';
import { readPrincipal } from '@/app/(console)/read-in-turn';
import { ApiReference } from '@/components/settings/api-reference';
import { forwardedTls } from '@/lib/server/access/session-cookie';
import { theServer } from '@/lib/server/process-server.mjs';

export const metadata: Metadata = { title: 'API' };

export default async function ApiSettingsPage() {
  await readPrincipal();
  const sent = await headers();
  const origin = `${forwardedTls(sent) ? 'https' : 'http'}://${sent.get('host')}`;
  return <ApiReference document={await theServer().description()} origin={origin} />;
}
