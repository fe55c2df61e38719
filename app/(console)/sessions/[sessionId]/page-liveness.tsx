'use client';

import type { ReactNode } from 'react';
import { SessionLiveness } from '@/app/(console)/session-liveness';
import { useSessionRows } from './session-scope';

/** For everything on a session's page. */
export function PageLiveness({ children }: { children: ReactNode }) {
  const { session, agent } = useSessionRows();
  return (
    <SessionLiveness session={session} agent={agent}>
      {children}
    </SessionLiveness>
  );
}
