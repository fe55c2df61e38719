'use client';

import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { browserStorage, type Draft, readDraft, storeDraft } from './draft-store';

const EMPTY: Draft = { text: '', replyTo: null };

/** What is being written to a session, kept until it is sent. */
export function useDraft(sessionId: string, field: RefObject<HTMLTextAreaElement | null>) {
  const [draft, setDraft] = useState(EMPTY);
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
  return { draft, change };
}
