import type { Metadata } from 'next';
import { readPrincipal } from '@/app/(console)/read-in-turn';
import { WebhookPanel } from '@/components/settings/webhook-panel';

export const metadata: Metadata = { title: 'Webhook' };

export default async function WebhookSettingsPage() {
  await readPrincipal();
  return <WebhookPanel />;
}
