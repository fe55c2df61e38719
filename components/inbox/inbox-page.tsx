'use client';

import type { InboxList } from '@interlude/protocol/inbox';
import { useInitialData } from '@/components/live/use-fleet';
import { RequestBoardProvider } from '@/components/requests/request-board';
import type { CodeOnDemand } from '@/components/ui/on-demand';
import { AnswerStoresProvider } from './answer-stores';
import { itemsOf } from './inbox-items';
import { InboxRows } from './inbox-rows';
import { InboxWays } from './inbox-ways';
import type { RequestedItem } from './use-request';

/**
 * Everything that needs a person.
 *
 * @param requestCode shows what an item asks, and takes the answer
 */
export function InboxPage(props: { initial: InboxList; requestCode: CodeOnDemand<{ item: RequestedItem }> }) {
  const { initial, requestCode } = props;
  useInitialData((fleet) => itemsOf(fleet).take(initial));
  return (
    <AnswerStoresProvider>
      <RequestBoardProvider>
        <InboxRows requestCode={requestCode} />
        <InboxWays />
      </RequestBoardProvider>
    </AnswerStoresProvider>
  );
}
