'use client';

import { stopPage } from '@/components/ui/leave-page';
import { placed } from '@/lib/protocol/base-path.mjs';

/** Ends this browser's sign-in, here and on the server. A form, so that it needs no script. */
export function SignOut({ className }: { className?: string }) {
  return (
    <form method="post" action={placed('/sign-out')} onSubmit={stopPage}>
      <button type="submit" className={className ?? 'h-8 rounded-md bg-ink px-4 text-ground hover:bg-ink-2'}>
        Sign out
      </button>
    </form>
  );
}
