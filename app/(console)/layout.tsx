import type { ReactNode } from 'react';
import { DONE_IN_PAGE, readSessions } from '@/lib/queries/read-sessions';
import { readInTurn } from './read-in-turn';
import { Shell } from './shell';

/** The list of sessions is read with the page, so that it is there before any script runs. */
export default async function ConsoleLayout({ children }: { children: ReactNode }) {
  const sessions = await readInTurn((database) => readSessions(database, DONE_IN_PAGE));
  return <Shell sessions={sessions}>{children}</Shell>;
}
