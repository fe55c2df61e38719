import type { Metadata } from 'next';
import { readPrincipal } from '@/app/(console)/read-in-turn';
import { NoticePanel } from '@/components/settings/notice-panel';

export const metadata: Metadata = { title: 'Notifications' };

export default async function NotificationSettingsPage() {
  await readPrincipal();
  return <NoticePanel />;
}
