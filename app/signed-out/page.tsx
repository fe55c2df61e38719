import type { Metadata } from 'next';
import { headers } from 'next/headers';
import { Logo } from '@/components/ui/icon';
import { accessSettings } from '@/lib/server/access/access-settings';
import { localNameOrigin } from '@/lib/server/access/session-cookie';
import { hasSessionCookie } from '@/lib/server/access/sign-in';
import { providerName } from '../provider-name';
import { ClearStorage } from './clear-storage';
import { SignInWays } from './sign-in-ways';
import { isTrouble, WhySignedOut } from './why-signed-out';

export const metadata: Metadata = { title: 'Sign in' };

/** Where a browser without a valid cookie ends up. Works without JavaScript. */
export default async function SignedOutPage({
  searchParams,
}: {
  searchParams: Promise<{ next?: string | string[]; reason?: string | string[] }>;
}) {
  const asked = await searchParams;
  const next = typeof asked.next === 'string' ? asked.next : '/';
  const reason = isTrouble(asked.reason) ? asked.reason : null;
  const given = await headers();
  const isSecure = given.get('x-forwarded-proto') === 'https';
  const own = localNameOrigin(given, { localName: accessSettings(process.env).localName, isSecure });
  return (
    <main className="grid min-h-dvh place-items-center px-6 py-10">
      <div className="w-full max-w-sm">
        <h1 className="flex items-center gap-2 font-medium text-lg">
          <Logo />
          Interlude
        </h1>
        {/* Whose sign-in has merely ended still has a cookie, and finds their drafts again. */}
        {!hasSessionCookie(given) && <ClearStorage />}
        <WhySignedOut reason={reason} />
        <SignInWays next={next} reason={reason} provider={providerName(process.env)} />
        {own !== null && (
          <p className="mt-6 text-pretty border-line border-t pt-4 text-ink-3 text-xs">
            Have you signed in with a link on this machine? Then this browser knows Interlude by an address of its own,
            so that nothing on another port is sent its cookie. <code>npm start</code> prints it.
          </p>
        )}
      </div>
    </main>
  );
}
