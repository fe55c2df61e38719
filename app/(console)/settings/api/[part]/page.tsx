import type { Metadata } from 'next';
import { notFound } from 'next/navigation';
import { visitor } from '@/app/(console)/read-in-turn';
import { ApiPartPage, ApiTypesPage } from '@/components/settings/api-page';
import { theServer } from '@/lib/server/process-server.mjs';

export const metadata: Metadata = { title: 'API' };

export default async function ApiPartSettingsPage(props: { params: Promise<{ part: string }> }) {
  await visitor();
  const { part } = await props.params;
  const document = await theServer().description();
  if (part === 'types') return <ApiTypesPage document={document} />;
  const tag = document.tags.find(({ name }) => name.toLowerCase() === part);
  if (tag === undefined) notFound();
  return <ApiPartPage document={document} part={tag.name} />;
}
