'use client';

import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { browserStorage } from '@/components/ui/browser-storage';
import { type Draft, EMPTY_DRAFT, readDraft, storeDraft } from './draft-store';

/** What is being written to a session, kept until it is sent. */
export function useDraft(sessionId: string, field: RefObject<HTMLTextAreaElement | null>) {
  const [draft, setDraft] = useState(EMPTY_DRAFT);
  const newest = useRef(draft);
  const change = useCallback(
    (next: Partial<Draft>) => {
      newest.current = { ...newest.current, ...next };
      storeDraft(browserStorage(), sessionId, newest.current);
      setDraft(newest.current);
    },
    [sessionId],
  );
  useEffect(() => {
    const stored = readDraft(browserStorage(), sessionId);
    // Somebody may have begun to type before this ran.
    const typed = field.current?.value ?? '';
    newest.current = typed === '' ? stored : { ...stored, text: typed };
    setDraft(newest.current);
  }, [sessionId, field]);
  /** Also between two renders. */
  const draftNow = useCallback(() => newest.current, []);
  return { draft, draftNow, change };
}
