'use client';

import { withBasePath } from '@interlude/protocol/base-path.mjs';
import { type FormEvent, type ReactNode, useState } from 'react';
import { usePagePerson } from '@/components/access/page-person';
import { browserStorage, keysOf, stopPage, storageKey } from '@/components/ui/browser-storage';

/**
 * Signs out in the browser and on the server. Asks for confirmation if unsent messages would be deleted. Uses a form to
 * work without scripts.
 */
export function SignOut(props: { label: ReactNode; className: string }) {
  const principal = usePagePerson() ?? '';
  const [isAsking, setAsking] = useState(false);
  const submit = (event: FormEvent) => {
    if (isAsking || !hasUnsent()) return stopPage();
    event.preventDefault();
    setAsking(true);
  };
  return (
    <form method="post" action={withBasePath('/sign-out')} onSubmit={submit}>
      <input type="hidden" name="principal" value={principal} />
      <button type="submit" className={props.className}>
        {props.label}
      </button>
      <p role="alert" className="px-3 text-failed text-xs">
        {isAsking && 'Signing out deletes your unsent messages. Press again to sign out.'}
      </p>
    </form>
  );
}

function hasUnsent(): boolean {
  const start = storageKey('outgoing:');
  return keysOf(browserStorage()).some((key) => key.startsWith(start));
}
