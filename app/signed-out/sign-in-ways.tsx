import { withBasePath } from '@interlude/protocol/base-path.mjs';
import type { ReactNode } from 'react';
import type { SignInFailure } from '@/lib/server/access/sign-in';

/** Sign-in with the identity provider if one is configured, else with a link or token from this machine. */
export function SignInOptions(props: { next: string; reason: SignInFailure | null; provider: string | null }) {
  const { next, reason, provider } = props;
  const local = (
    <>
      <p className="mt-4 text-pretty text-ink-2">
        Get a sign-in link: on the machine that runs Interlude, in its folder, run
      </p>
      <pre className="mt-2 whitespace-pre-wrap rounded-md bg-sunken px-3 py-2 text-ink text-xs">
        npx interlude sign-in
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
      {/* Open after a failed attempt, to show its error. */}
      <details open={reason === 'wrong-token' || reason === 'old-link'} className="mt-5">
        <summary className="w-fit text-ink-3 text-xs hover:text-ink">On the machine that runs Interlude</summary>
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
            Wrong token. A new data directory has a new token.
          </p>
        )}
        <button type="submit" className="mt-4 h-8 rounded-md bg-ink px-4 text-ground hover:bg-ink-2">
          Sign in
        </button>
      </form>
      <p className="mt-6 text-pretty text-ink-3 text-xs">
        The token is in the file <code>token</code> in the data directory (<code>.interlude</code>, or{' '}
        <code>INTERLUDE_DATA_DIR</code> if set), or in <code>INTERLUDE_TOKEN</code> if you set it.
      </p>
    </>
  );
}

const WORDS: Record<SignInFailure, { what: string; todo: string } | null> = {
  ended: {
    what: 'You are signed out.',
    todo: 'You signed out, an admin signed you out, or your sign-in expired.',
  },
  'old-link': {
    what: 'This link no longer works.',
    todo: 'It was already used, is older than five minutes, or was created by a sign-in that has ended. Get a new one below.',
  },
  // shown beside the field
  'wrong-token': null,
};

export function isTrouble(reason: unknown): reason is SignInFailure {
  return typeof reason === 'string' && Object.hasOwn(WORDS, reason);
}

/** The reason for the sign-out or the failed sign-in. */
export function SignedOutReason({ reason }: { reason: SignInFailure | null }) {
  const words = reason === null ? null : WORDS[reason];
  if (words === null) return null;
  return (
    <p role="status" className="mt-5 text-pretty text-ink-2">
      <span className="block font-medium text-ink">{words.what}</span>
      {words.todo}
    </p>
  );
}
