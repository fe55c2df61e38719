import { ThemeProvider } from 'next-themes';
import type { ReactNode } from 'react';
import { pageNonce } from './page-nonce';

/** The theme that this browser was told to show our pages in. A frame is told by the page around it. */
export async function WithTheme({ children }: { children: ReactNode }) {
  return (
    <ThemeProvider
      attribute="class"
      defaultTheme="system"
      enableSystem
      disableTransitionOnChange={false}
      nonce={await pageNonce()}
    >
      {children}
    </ThemeProvider>
  );
}
