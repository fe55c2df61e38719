'use client';

import { useEffect, useRef, useState } from 'react';
import { postJson, RequestError } from '@/components/live/fetch-json';
import type { WaiveAnswer } from '@/lib/protocol/commands';

/** How long a first press waits for the second. */
const CONFIRM_MS = 4_000;

export type WaiveState = { kind: 'offered' | 'pressed' | 'sending' | 'sent' } | { kind: 'failed'; reason: string };

/** Drops a reply that is owed, when pressed twice: there is no way back. */
export function useWaive(sessionId: string, messageId: string) {
  const [state, setState] = useState<WaiveState>({ kind: 'offered' });
  // One that got no answer keeps its name, so that it is known again.
  const clientId = useRef<string | null>(null);
  useEffect(() => {
    if (state.kind !== 'pressed') return;
    const timer = setTimeout(() => setState({ kind: 'offered' }), CONFIRM_MS);
    return () => clearTimeout(timer);
  }, [state]);

  const send = async () => {
    setState({ kind: 'sending' });
    clientId.current ??= crypto.randomUUID();
    const path = `/sessions/${encodeURIComponent(sessionId)}/obligations/${encodeURIComponent(messageId)}/waive`;
    try {
      await postJson<WaiveAnswer>(path, { clientId: clientId.current });
      // The live row takes it off the list.
      setState({ kind: 'sent' });
    } catch (error) {
      const reason = error instanceof RequestError ? error.message : 'The server can’t be reached.';
      setState({ kind: 'failed', reason });
    }
  };
  return {
    state,
    press: () => {
      if (state.kind === 'pressed') void send();
      else if (state.kind === 'offered' || state.kind === 'failed') setState({ kind: 'pressed' });
    },
    letGo: () => setState((now) => (now.kind === 'pressed' ? { kind: 'offered' } : now)),
  };
}
