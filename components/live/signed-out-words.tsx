'use client';

import { withBasePath } from '@interlude/protocol/base-path.mjs';
import { usePathname, useSearchParams } from 'next/navigation';

/** Shown above the page when the server rejects the cookie. */
export function SignedOutWords() {
  const query = useSearchParams().toString();
  const next = `${usePathname()}${query === '' ? '' : `?${query}`}`;
  return (
    <p role="alert" className="flex flex-wrap items-baseline gap-x-3 bg-failed-soft px-4 py-2 text-failed text-xs">
      <span>You signed out, an admin signed you out, or your sign-in expired. This page no longer updates.</span>
      <a href={withBasePath(`/sign-in?next=${encodeURIComponent(next)}`)} className="underline">
        Sign in again
      </a>
    </p>
  );
}
