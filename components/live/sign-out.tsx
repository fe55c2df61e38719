'use client';

import { withBasePath } from '@interlude/protocol/base-path.mjs';
import type { ReactNode } from 'react';
import { usePagePerson } from '@/components/access/page-person';
import { stopPage } from '@/components/ui/browser-storage';

/** Signs out in the browser and on the server. A form, so that it works without scripts. */
export function SignOut(props: { label: ReactNode; className: string }) {
  const principal = usePagePerson() ?? '';
  return (
    <form method="post" action={withBasePath('/sign-out')} onSubmit={stopPage}>
      <input type="hidden" name="principal" value={principal} />
      <button type="submit" className={props.className}>
        {props.label}
      </button>
    </form>
  );
}
