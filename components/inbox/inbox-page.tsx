'use client';

import type { InboxList } from '@interlude/protocol/inbox';
import { useInitialData } from '@/components/live/use-fleet';
import { RequestBoardProvider } from '@/components/requests/request-board';
import { Link } from '@/components/ui/link';
import type { CodeOnDemand } from '@/components/ui/on-demand';
import { itemsOf } from './inbox-items';
import { InboxRows } from './inbox-rows';
import type { RequestedItem } from './item-request';
import { AnswerStoresProvider } from './item-request';

/**
 * The inbox page.
 *
 * @param requestCode renders a request with its answer buttons
 */
export function InboxPage(props: { initial: InboxList; requestCode: CodeOnDemand<{ item: RequestedItem }> }) {
  const { initial, requestCode } = props;
  useInitialData((fleet) => itemsOf(fleet).putList(initial));
  return (
    <AnswerStoresProvider>
      <RequestBoardProvider>
        <InboxRows requestCode={requestCode} />
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
