import type { Metadata } from 'next';
import { Logo } from '@/components/ui/logo';

export const metadata: Metadata = { title: 'Sign in' };

/** Where a browser without a valid cookie ends up. Works without JavaScript. */
export default async function SignedOutPage({
  searchParams,
}: {
  searchParams: Promise<{ next?: string | string[]; reason?: string | string[] }>;
}) {
  const { next, reason } = await searchParams;
  const wrong = reason === 'wrong-token';
  return (
    <main className="grid min-h-dvh place-items-center px-6 py-10">
      <div className="w-full max-w-sm">
        <h1 className="flex items-center gap-2 font-medium text-lg">
          <Logo />
          Interlude
        </h1>
        <p className="mt-4 text-ink-2">
          Open the sign-in link that <code className="text-ink">npm start</code> printed in the terminal, or paste the
          token here.
        </p>
        <form method="post" action="/sign-in" className="mt-5">
          {typeof next === 'string' && <input type="hidden" name="next" value={next} />}
          <label htmlFor="token" className="block text-2xs text-ink-3">
            Token
          </label>
          <input
            id="token"
            name="token"
            type="password"
            required
            autoComplete="current-password"
            aria-invalid={wrong}
            aria-describedby={wrong ? 'wrong-token' : undefined}
            className="mt-1 h-9 w-full border-line-strong border-b bg-transparent font-mono text-sm outline-none focus:border-accent"
          />
          {wrong && (
            <p id="wrong-token" role="alert" className="mt-2 text-failed text-xs">
              That is not this server’s token. Look for the newest link: a new data directory makes a new token.
            </p>
          )}
          <button type="submit" className="mt-4 h-8 rounded-md bg-ink px-4 text-ground hover:bg-ink-2">
            Sign in
          </button>
        </form>
        <p className="mt-6 text-ink-3 text-xs">
          The token is in the file <code>token</code> of the data directory (<code>.interlude</code> unless{' '}
          <code>INTERLUDE_DATA_DIR</code> says otherwise), or in <code>INTERLUDE_TOKEN</code> if you set it.
        </p>
      </div>
    </main>
  );
}
