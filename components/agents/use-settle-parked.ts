'use client';

import { useRef, useState } from 'react';
import { postJson, RequestError } from '@/components/live/fetch-json';
import type { ParkedAnswer } from '@/lib/protocol/commands';
import type { Position } from '@/lib/protocol/position';

export type SettleState = { kind: 'offered' | 'sending' | 'sent' } | { kind: 'failed'; reason: string };

/** Says whose a parked record is, or that it is of no use. The agent's row, which changes, takes it off the list. */
export function useSettleParked(agentId: string, position: Position) {
  const [state, setState] = useState<SettleState>({ kind: 'offered' });
  // What got no answer keeps its name, so that it is known again. Another choice is another request.
  const asked = useRef<{ what: string; clientId: string } | null>(null);
  const send = async (action: 'assign' | 'discard', body: object) => {
    const what = JSON.stringify([action, body]);
    if (asked.current?.what !== what) asked.current = { what, clientId: crypto.randomUUID() };
    setState({ kind: 'sending' });
    const path = `/agents/${encodeURIComponent(agentId)}/parked/${position}/${action}`;
    try {
      const { clientId } = asked.current;
      const { left } = await postJson<ParkedAnswer>(path, { ...body, clientId });
      setState({ kind: left > 0 ? 'offered' : 'sent' });
    } catch (error) {
      const reason = error instanceof RequestError ? error.message : 'The server can’t be reached.';
      setState({ kind: 'failed', reason });
    }
  };
  return {
    state,
    assign: (sessionId: string) => send('assign', { sessionId }),
    discard: () => send('discard', {}),
  };
}
