import type { SignInFailure } from '@/lib/server/access/sign-in';

const WORDS: Record<SignInFailure, { what: string; todo: string } | null> = {
  ended: {
    what: 'You are signed out.',
    todo: 'You signed out, an admin signed you out, or your sign-in expired.',
  },
  'old-link': {
    what: 'That link does not work any more.',
    todo: 'It was used, is older than five minutes, or was made by a sign-in that has ended. Get a new one below.',
  },
  // said at the field
  'wrong-token': null,
};

export function isTrouble(reason: unknown): reason is SignInFailure {
  return typeof reason === 'string' && Object.hasOwn(WORDS, reason);
}

/** What became of the sign-in, or of the attempt. */
export function WhySignedOut({ reason }: { reason: SignInFailure | null }) {
  const words = reason === null ? null : WORDS[reason];
  if (words === null) return null;
  return (
    <p role="status" className="mt-5 text-pretty text-ink-2">
      <span className="block font-medium text-ink">{words.what}</span>
      {words.todo}
    </p>
  );
}
