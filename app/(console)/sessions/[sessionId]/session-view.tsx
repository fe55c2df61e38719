'use client';

import { useState } from 'react';
import { SessionPanes } from './session-panes';
import { type SessionStart, SessionStores } from './session-stores';

interface SessionViewProps {
  sessionId: string;
  /** JSON of a SessionStart: as an object it would come without what an agent calls `__proto__`. */
  initial: string;
  nonce: string | undefined;
}

/** A session's page, with what came along. */
export function SessionView({ sessionId, initial: json, nonce }: SessionViewProps) {
  const [initial] = useState(() => JSON.parse(json) as SessionStart);
  return (
    <SessionStores sessionId={sessionId} initial={initial}>
      {(parts) => <SessionPanes nonce={nonce} {...parts} />}
    </SessionStores>
  );
}
