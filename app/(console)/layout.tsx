import type { ReactNode } from 'react';
import { commandPlace } from '@/lib/access/command-place';
import { readSessionPage, SESSIONS_IN_PAGE } from '@/lib/queries/read-sessions';
import { readInTurn } from './read-in-turn';
import { Shell } from './shell';

/** The first of the sessions are read with every page, so that they are there before any script runs. */
export default async function ConsoleLayout({ children }: { children: ReactNode }) {
  const sessions = await readInTurn((database) => readSessionPage(database, { after: null, limit: SESSIONS_IN_PAGE }));
  return (
    <Shell sessions={sessions} place={commandPlace(process.env)}>
      {children}
    </Shell>
  );
}
