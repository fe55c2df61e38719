'use client';

import { stopPage } from '@/components/ui/leave-page';
import { placed } from '@/lib/protocol/base-path.mjs';

/**
 * Ends this browser's sign-in, here and on the server. A form, so that it needs no script.
 *
 * @param principal the person of this page, by the `id` of `GET /me`
 */
export function SignOut(props: { principal: string; label: string; className: string; formClassName?: string }) {
  return (
    <form method="post" action={placed('/sign-out')} onSubmit={stopPage} className={props.formClassName}>
      <input type="hidden" name="principal" value={props.principal} />
      <button type="submit" className={props.className}>
        {props.label}
      </button>
    </form>
  );
}
