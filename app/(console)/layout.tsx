import type { ReactNode } from 'react';
import { MayActProvider } from '@/components/access/may-act';
import { PagePerson } from '@/components/access/page-person';
import { CurrentCounts } from '@/components/live/use-counts';
import { commandPlace, findLocalAgents } from '@/lib/server/access/command-place';
import { inboxPerson, may } from '@/lib/server/access/principal';
import { readCounts } from '@/lib/server/queries/read-counts';
import { readSessionPage, SESSIONS_IN_PAGE } from '@/lib/server/queries/read-sessions';
import { readInTurn, readPrincipal } from './read-in-turn';
import { Shell } from './shell';
import { TopLinks } from './top-links';

/** Shown to viewers in place of the composer. */
const MAY_READ = 'You have read access. To write, ask an admin for the operator role.';

/** Reads the first sessions with every page, so they show before any script runs. */
export default async function ConsoleLayout({ children }: { children: ReactNode }) {
  const principal = await readPrincipal();
  const mayAct = may(principal, 'act');
  const { sessions, counts } = await readInTurn(async (scope) => ({
    sessions: await readSessionPage(scope, { after: null, limit: SESSIONS_IN_PAGE }),
    counts: await readCounts(scope, inboxPerson(principal).id),
  }));
  const place = commandPlace(process.env);
  const mayConnect = may(principal, 'administer');
  const isEmpty = sessions.sessions.every(({ arrangement }) => arrangement.archivedAt !== null);
  const found = isEmpty && mayConnect ? await findLocalAgents(place) : null;
  return (
    <PagePerson id={principal.id}>
      <CurrentCounts initial={counts} />
      <MayActProvider may={mayAct} why={mayAct ? null : MAY_READ} answersHere>
        <Shell sessions={sessions} place={{ ...place, mayConnect, found }} links={<TopLinks />}>
          {children}
        </Shell>
      </MayActProvider>
    </PagePerson>
  );
}
