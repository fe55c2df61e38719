'use client';

import { useState } from 'react';
import { newId } from '@/components/ui/new-id';
import { useStored } from '@/components/ui/use-stored';
import type { InboxPerson } from '@/lib/protocol/inbox';
import { MAX_PERSON_NAME } from '@/lib/protocol/limits';

const UNNAMED = 'Operator';

/** Who sits at this browser: an id that it keeps from the first time it signs with it, and what they want to be called. */
export function usePerson(): { id: string; name: string; rename: (name: string) => void; sign: () => InboxPerson } {
  const [fresh] = useState(newId);
  const [kept, keep] = useStored('person');
  const [name, rename] = useStored('person-name');
  const id = kept ?? fresh;
  const sign = () => {
    if (kept === null) keep(id);
    return { id, name: name?.trim().slice(0, MAX_PERSON_NAME) || UNNAMED };
  };
  return { id, name: name ?? '', rename, sign };
}
