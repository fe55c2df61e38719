import type { Metadata } from 'next';
import { headers } from 'next/headers';
import { Logo } from '@/components/ui/logo';
import { accessSettings } from '@/lib/access/access-settings';
import { ownAddress } from '@/lib/access/own-address';
import { signedOutPath } from '@/lib/access/sign-in';
import { providerName } from '../provider-name';
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
  const own = ownAddress(given, { localName: accessSettings(process.env).localName, isSecure });
  return (
    <main className="grid min-h-dvh place-items-center px-6 py-10">
      <div className="w-full max-w-sm">
        <h1 className="flex items-center gap-2 font-medium text-lg">
          <Logo />
          Interlude
        </h1>
        <WhySignedOut reason={reason} />
        <SignInWays next={next} isWrongToken={reason === 'wrong-token'} provider={providerName(process.env)} />
        {own !== null && (
          <p className="mt-6 border-line border-t pt-4 text-ink-3 text-xs">
            On this machine, rather sign in at{' '}
            <a
              href={`${own}${signedOutPath(next, reason ?? undefined)}`}
              className="text-ink-2 underline underline-offset-2 hover:text-ink"
            >
              {own.replace('http://', '')}
            </a>
            . Browsers send a cookie to every port of a host: under a name of its own, Interlude’s goes to nobody else.
          </p>
        )}
      </div>
    </main>
  );
}
