import type { ReactNode } from 'react';
import { pageNonce } from '@/app/page-nonce';
import { EmbedGate } from '@/components/embed/embed-gate';
import { FIRST_SCRIPT } from '@/components/embed/first-script';
import { embedOrigins } from '@/lib/access/embed-origins';

/** Around what a console shows in a frame. The server puts nothing in it that anybody may not know. */
export default async function EmbedLayout({ children }: { children: ReactNode }) {
  const nonce = await pageNonce();
  return (
    <>
      {/* biome-ignore lint/security/noDangerouslySetInnerHtml: a constant of ours */}
      <script nonce={nonce} suppressHydrationWarning dangerouslySetInnerHTML={{ __html: FIRST_SCRIPT }} />
      {/* oxlint-disable-next-line react-compiler/purity -- runs once a request, on the server */}
      <EmbedGate origins={embedOrigins(process.env)} renderedAt={Date.now()}>
        {children}
      </EmbedGate>
    </>
  );
}
