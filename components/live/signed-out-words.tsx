'use client';

import { usePathname } from 'next/navigation';

/** Said once, above everything, when the server no longer takes this browser's cookie. */
export function SignedOutWords() {
  const path = usePathname();
  return (
    <p role="alert" className="flex items-baseline gap-3 bg-failed-soft px-4 py-2 text-failed text-xs">
      Your sign-in has ended, so nothing here is updated any more.
      <a href={`/sign-in?next=${encodeURIComponent(path)}`} className="underline">
        Sign in again
      </a>
    </p>
  );
}
