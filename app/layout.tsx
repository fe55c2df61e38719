import { GeistMono } from 'geist/font/mono';
import { GeistSans } from 'geist/font/sans';
import type { Metadata, Viewport } from 'next';
import { connection } from 'next/server';
import type { ReactNode } from 'react';
import { NowProvider } from '@/components/ui/now';
import './globals.css';

export const metadata: Metadata = {
  title: { default: 'Interlude', template: '%s · Interlude' },
  description: 'The live dashboard for coding agents that keep working after their turn has ended.',
  robots: { index: false },
};

export const viewport: Viewport = {
  themeColor: [
    { media: '(prefers-color-scheme: light)', color: '#fdfdfd' },
    { media: '(prefers-color-scheme: dark)', color: '#111113' },
  ],
};

export default async function RootLayout({ children }: { children: ReactNode }) {
  // Each response has a nonce of its own: no page can be made beforehand.
  await connection();
  return (
    <html lang="en" suppressHydrationWarning className={`${GeistSans.variable} ${GeistMono.variable}`}>
      <body>
        {/* oxlint-disable-next-line react-compiler/purity -- runs once a request, on the server */}
        <NowProvider renderedAt={Date.now()}>{children}</NowProvider>
      </body>
    </html>
  );
}
