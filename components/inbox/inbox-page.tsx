'use client';

import type { InboxList } from '@interlude/protocol/inbox';
import { useInitialData } from '@/components/live/use-fleet';
import { RequestBoardProvider } from '@/components/requests/request-board';
import { Link } from '@/components/ui/link';
import { itemsOf } from './inbox-items';
import { type InboxCode, InboxRows } from './inbox-rows';
import { AnswerStoresProvider } from './item-request';

/** The inbox page. */
export function InboxPage({ initial, ...code }: { initial: InboxList } & InboxCode) {
  useInitialData((fleet) => itemsOf(fleet).putList(initial));
  return (
    <AnswerStoresProvider>
      <RequestBoardProvider>
        <InboxRows {...code} />
        <p className="pt-4 text-2xs">
          <Link
            href="/settings/notifications"
            className="inline-flex min-h-6 items-center text-ink-3 hover:text-ink pointer-coarse:min-h-11"
          >
            Notification settings
          </Link>
        </p>
      </RequestBoardProvider>
    </AnswerStoresProvider>
  );
}
