import type { Metadata } from 'next';
import { headers } from 'next/headers';
import { Logo } from '@/components/ui/icon';
import { accessSettings } from '@/lib/server/access/access-settings';
import { localNameOrigin } from '@/lib/server/access/session-cookie';
import { hasSessionCookie } from '@/lib/server/access/sign-in';
import { providerName } from '../provider-name';
import { ClearStorage } from './clear-storage';
import { isTrouble, SignedOutReason, SignInOptions } from './sign-in-ways';

export const metadata: Metadata = { title: 'Sign in' };

/** The page for a browser without a valid cookie. Works without JavaScript. */
export default async function SignedOutPage({
  searchParams,
}: {
  searchParams: Promise<{ next?: string | string[]; reason?: string | string[] }>;
}) {
  const query = await searchParams;
  const next = typeof query.next === 'string' ? query.next : '/';
  const reason = isTrouble(query.reason) ? query.reason : null;
  const requestHeaders = await headers();
  const isSecure = requestHeaders.get('x-forwarded-proto') === 'https';
  const own = localNameOrigin(requestHeaders, { localName: accessSettings(process.env).localName, isSecure });
  return (
    <main className="grid min-h-dvh place-items-center px-6 py-10">
      <div className="w-full max-w-sm">
        <h1 className="flex items-center gap-2 font-medium text-lg">
          <Logo />
          Interlude
        </h1>
        {/* With an expired cookie, the same user may return to their drafts. */}
        {!hasSessionCookie(requestHeaders) && <ClearStorage />}
        <SignedOutReason reason={reason} />
        <SignInOptions next={next} reason={reason} provider={providerName(process.env)} />
        {own !== null && (
          <p className="mt-6 text-pretty border-line border-t pt-4 text-ink-3 text-xs">
            Did you sign in with a link on this machine? Use the address that <code>npm start</code> prints: it keeps
            the sign-in cookie separate from other ports.
          </p>
        )}
      </div>
    </main>
  );
}
