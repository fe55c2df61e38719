import { GeistMono } from 'geist/font/mono';
import { GeistSans } from 'geist/font/sans';
import type { Metadata, Viewport } from 'next';
import { headers } from 'next/headers';
import type { ReactNode } from 'react';
import { LiveProvider } from '@/components/live/live-provider';
import { APPEARANCE_SCRIPT } from '@/components/ui/appearance-script';
import { NowProvider } from '@/components/ui/clock';
import { localTimes } from '@/components/ui/local-times';
import { EMBED_HEADER } from '@/lib/server/access/embeds';
import './globals.css';
import { pageNonce } from './page-nonce';

export const metadata: Metadata = {
  title: { default: 'Interlude', template: '%s · Interlude' },
  description: 'The live dashboard for coding agents that keep working after their turn has ended.',
  robots: { index: false },
};

export const viewport: Viewport = {
  viewportFit: 'cover',
  interactiveWidget: 'resizes-content',
  themeColor: [
    { media: '(prefers-color-scheme: light)', color: '#fdfdfd' },
    { media: '(prefers-color-scheme: dark)', color: '#111113' },
  ],
};

export default async function RootLayout({ children }: { children: ReactNode }) {
  const nonce = await pageNonce();
  // Embeds must not read browser storage or use the dashboard's cookie.
  const bare = (await headers()).has(EMBED_HEADER);
  return (
    <html lang="en" suppressHydrationWarning className={`${GeistSans.variable} ${GeistMono.variable}`}>
      <body>
        <script nonce={nonce} suppressHydrationWarning>
          {localTimes(!bare)}
        </script>
        {bare ? (
          children
        ) : (
          <>
            {/* biome-ignore lint/security/noDangerouslySetInnerHtml: a constant */}
            <script nonce={nonce} suppressHydrationWarning dangerouslySetInnerHTML={{ __html: APPEARANCE_SCRIPT }} />
            {/* oxlint-disable-next-line react-compiler/purity -- runs once a request, on the server */}
            <NowProvider renderedAt={Date.now()}>
              <LiveProvider>{children}</LiveProvider>
            </NowProvider>
          </>
        )}
      </body>
    </html>
  );
}
