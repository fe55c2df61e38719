'use client';

import { ConnectionBadge } from '@/components/live/connection-badge';
import { CurrentCounts } from '@/components/live/use-counts';
import { SessionNav } from '@/components/sessions/session-nav';

/** The list of sessions in a frame. The embedding page handles its links. */
export function EmbedFleet() {
  return (
    <main className="flex h-full min-h-0 flex-col">
      <header className="flex shrink-0 items-center gap-3 px-4 pt-2">
        <h1 className="font-medium text-md">Sessions</h1>
        <div className="ml-auto">
          <ConnectionBadge />
        </div>
      </header>
      <CurrentCounts />
      <SessionNav
        currentId={null}
        // the search isn't kept in the URL here
        keysEverywhere={false}
        empty={<p className="px-4 py-3 text-ink-3">No sessions yet.</p>}
      />
    </main>
  );
}
