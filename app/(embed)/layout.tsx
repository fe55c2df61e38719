import type { ReactNode } from 'react';
import { pageNonce } from '@/app/page-nonce';
import { FIRST_SCRIPT } from '@/components/embed/first-script';

export default async function EmbedLayout({ children }: { children: ReactNode }) {
  const nonce = await pageNonce();
  return (
    <>
      {/* biome-ignore lint/security/noDangerouslySetInnerHtml: a constant */}
      <script nonce={nonce} suppressHydrationWarning dangerouslySetInnerHTML={{ __html: FIRST_SCRIPT }} />
      {children}
    </>
  );
}
