'use client';

import { useState } from 'react';
import { useStored } from '@/components/ui/use-stored';
import type { InboxPerson } from '@/lib/protocol/inbox';
import { MAX_PERSON_NAME } from '@/lib/protocol/limits';

const UNNAMED = 'Operator';

/** Who sits at this browser: an id that it keeps, and what they want to be called. */
export function usePerson(): { person: InboxPerson; name: string; rename: (name: string) => void } {
  const [fresh] = useState(() => crypto.randomUUID());
  const [id, keepId] = useStored('interlude-person');
  const [name, rename] = useStored('interlude-person-name');
  const person = {
    get id() {
      // kept once it is used
      if (id === null) keepId(fresh);
      return id ?? fresh;
    },
    name: name?.trim().slice(0, MAX_PERSON_NAME) || UNNAMED,
  };
  return { person, name: name ?? '', rename };
}
