'use client';

import { useState } from 'react';

/** Something that is done on a press: whether it is under way, and why it failed. */
export function useAct() {
  const [isSending, setSending] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const act = async (work: () => Promise<unknown>) => {
    setSending(true);
    setFailure(null);
    try {
      await work();
    } catch (error) {
      setFailure((error as Error).message);
    }
    setSending(false);
  };
  return { isSending, failure, act };
}
