import type { ReactNode } from 'react';
import { pageNonce } from '@/app/page-nonce';
import { MayActProvider } from '@/components/access/may-act';
import { PagePerson } from '@/components/access/page-person';
import { CurrentCounts } from '@/components/live/use-counts';
import { SIDEBAR_KEY, storageKeyOf, VIEWS_KEY } from '@/components/ui/storage-key';
import { commandPlace, findLocalAgents } from '@/lib/server/access/command-place';
import { inboxPerson, may } from '@/lib/server/access/principal';
import { readCounts } from '@/lib/server/queries/read-counts';
import { LISTED_SESSIONS, readSessionPage, SESSIONS_IN_PAGE } from '@/lib/server/queries/read-sessions';
import { BottomBar, Sidebar } from './navigation';
import { PageHeader } from './page-header';
import { readInTurn, readPrincipal } from './read-in-turn';
import { Shell } from './shell';

/** Shown to viewers in place of the composer. */
const MAY_READ = 'You have read access. To write, ask an admin for the operator role.';

/**
 * A script that, before the first paint, restores the collapsed sidebar and reserves the height of the saved views.
 */
function arrangesSidebar(person: string): string {
  const stored = (key: string) => `localStorage.getItem(${JSON.stringify(storageKeyOf(person, key))})`;
  return `try{let e=document.documentElement;e.dataset.sidebar=${stored(SIDEBAR_KEY)}??'';
    e.style.setProperty('--views',JSON.parse(${stored(VIEWS_KEY)}??'[]').length)}catch{}`;
}

/** A script that scrolls the list to the open session before the first paint. */
const SHOWS_OPEN_SESSION = `document.querySelector('#sessions [aria-current=page]')?.scrollIntoView({block:'nearest'})`;

/** Reads the first sessions with every page, so they show before any script runs. */
export default async function ConsoleLayout({ children }: { children: ReactNode }) {
  const principal = await readPrincipal();
  const mayAct = may(principal, 'act');
  const nonce = await pageNonce();
  const { sessions, counts } = await readInTurn(async (scope) => ({
    sessions: await readSessionPage(scope, { after: null, limit: SESSIONS_IN_PAGE }, LISTED_SESSIONS),
    counts: await readCounts(scope, inboxPerson(principal).id),
  }));
  const place = commandPlace(process.env);
  const mayConnect = may(principal, 'administer');
  const isEmpty = Object.entries(counts.groups).every(([group, count]) => group === 'archived' || count === 0);
  const found = isEmpty && mayConnect ? await findLocalAgents(place) : null;
  return (
    <PagePerson id={principal.id}>
      <script nonce={nonce} suppressHydrationWarning>
        {arrangesSidebar(principal.id)}
      </script>
      <CurrentCounts initial={counts} />
      <MayActProvider may={mayAct} why={mayAct ? null : MAY_READ} answersHere>
        <Shell
          sessions={sessions}
          place={{ ...place, mayConnect, found }}
          header={<PageHeader title="Sessions" className="" />}
          sidebar={<Sidebar />}
          afterList={
            <script nonce={nonce} suppressHydrationWarning>
              {SHOWS_OPEN_SESSION}
            </script>
          }
          bottomBar={<BottomBar />}
        >
          {children}
        </Shell>
      </MayActProvider>
    </PagePerson>
  );
}
