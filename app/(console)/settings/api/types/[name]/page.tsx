import type { Metadata } from 'next';
import { notFound } from 'next/navigation';
import { visitor } from '@/app/(console)/read-in-turn';
import { ApiTypePage } from '@/components/settings/api-page';
import { theServer } from '@/lib/server/process-server.mjs';

export const metadata: Metadata = { title: 'API' };

export default async function ApiTypeSettingsPage(props: { params: Promise<{ name: string }> }) {
  await visitor();
  const { name } = await props.params;
  const document = await theServer().description();
  if (!Object.hasOwn(document.components.schemas, name)) notFound();
  return <ApiTypePage document={document} name={name} />;
}
