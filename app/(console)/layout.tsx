import type { ReactNode } from 'react';
import { serverContext } from '@/lib/access/server-context';
import { DONE_IN_PAGE, readSessions } from '@/lib/queries/read-sessions';
import { Shell } from './shell';

/** The list of sessions is read with the page, so that it is there before any script runs. */
export default async function ConsoleLayout({ children }: { children: ReactNode }) {
  const { database } = await serverContext();
  return <Shell sessions={await readSessions(database, DONE_IN_PAGE)}>{children}</Shell>;
}
