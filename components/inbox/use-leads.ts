'use client';

import { useEffect, useState } from 'react';
import { storageKey } from '@/components/ui/browser-storage';
import { canNotify, noteRefusal } from './notice-refusal';

/** Whether this tab notifies for all of its person's tabs in this browser: one does, and when it goes another one takes over. */
export function useLeads(): boolean {
  const [leads, setLeads] = useState(false);
  useEffect(() => {
    if (!canNotify()) return;
    const left = new AbortController();
    const lead = async () => {
      try {
        await navigator.locks.request(storageKey('notices'), { signal: left.signal }, async () => {
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
