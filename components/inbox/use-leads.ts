'use client';

import { useEffect, useState } from 'react';
import { BASE_PATH } from '@/lib/protocol/base-path.mjs';
import { canNotify, noteRefusal } from './notice-refusal';

const LOCK = `interlude-notices${BASE_PATH}`;

/** Whether this tab notifies for all of the browser's: one does, and when it goes another one takes over. */
export function useLeads(): boolean {
  const [leads, setLeads] = useState(false);
  useEffect(() => {
    if (!canNotify()) return;
    const left = new AbortController();
    const lead = async () => {
      try {
        await navigator.locks.request(LOCK, { signal: left.signal }, async () => {
          setLeads(true);
          await new Promise((resolve) => left.signal.addEventListener('abort', resolve));
        });
      } catch (error) {
        if (!left.signal.aborted) noteRefusal(error);
      }
    };
    void lead();
    return () => left.abort();
  }, []);
  return leads;
}
