import { withBasePath } from '@interlude/protocol/base-path.mjs';
import type { ReactNode } from 'react';
import type { SignInFailure } from '@/lib/server/access/sign-in';

/** How to come in: with the provider that is set, else with what this machine knows. */
export function SignInWays(props: { next: string; reason: SignInFailure | null; provider: string | null }) {
  const { next, reason, provider } = props;
  const local = (
    <>
      <p className="mt-4 text-pretty text-ink-2">Get a sign-in link on the machine that Interlude runs on:</p>
      <pre className="mt-2 whitespace-pre-wrap rounded-md bg-sunken px-3 py-2 text-ink text-xs">
        npm run -s interlude -- sign-in
      </pre>
      <TokenForm next={next} isWrong={reason === 'wrong-token'} />
    </>
  );
  if (provider === null) return local;
  return (
    <>
      <a
        href={withBasePath(`/sign-in/provider?${new URLSearchParams({ next })}`)}
        className="mt-6 flex min-h-9 w-full items-center justify-center rounded-md bg-ink px-4 py-1.5 text-center text-ground [overflow-wrap:anywhere] hover:bg-ink-2"
      >
        Sign in with {provider}
      </a>
      {/* Who has just come this way sees why it did not do. */}
      <details open={reason === 'wrong-token' || reason === 'old-link'} className="mt-5">
        <summary className="w-fit text-ink-3 text-xs hover:text-ink">On the machine that Interlude runs on</summary>
        {local}
      </details>
    </>
  );
}

function TokenForm({ next, isWrong }: { next: string; isWrong: boolean }): ReactNode {
  return (
    <>
      <form method="post" action={withBasePath('/sign-in')} className="mt-5">
        <input type="hidden" name="next" value={next} />
        <label htmlFor="token" className="block text-2xs text-ink-3">
          Or paste the token
        </label>
        <input
          id="token"
          name="token"
          type="password"
          required
          autoComplete="current-password"
          aria-invalid={isWrong}
          aria-describedby={isWrong ? 'wrong-token' : undefined}
          className="mt-1 h-9 w-full rounded-md border border-line-strong bg-ground px-3 font-mono text-sm"
        />
        {isWrong && (
          <p id="wrong-token" role="alert" className="mt-2 text-failed text-xs">
            That is not this server’s token. A new data directory makes a new one.
          </p>
        )}
        <button type="submit" className="mt-4 h-8 rounded-md bg-ink px-4 text-ground hover:bg-ink-2">
          Sign in
        </button>
      </form>
      <p className="mt-6 text-pretty text-ink-3 text-xs">
        The token is in the file <code>token</code> of the data directory (<code>.interlude</code> unless{' '}
        <code>INTERLUDE_DATA_DIR</code> says otherwise), or in <code>INTERLUDE_TOKEN</code> if you set it.
      </p>
    </>
  );
}
