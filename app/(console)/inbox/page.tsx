import type { Metadata } from 'next';
import { ITEMS_IN_PAGE, readInbox } from '@/lib/server/queries/read-inbox';
import { PageFrame } from '../page-frame';
import { readInTurn } from '../read-in-turn';
import { InboxView } from './inbox-view';

export const metadata: Metadata = { title: 'Inbox' };

export default async function Inbox() {
  const inbox = await readInTurn((scope) => readInbox(scope, { after: null, limit: ITEMS_IN_PAGE, by: 'owner' }));
  return (
    <PageFrame title="Inbox" hasPane>
      <InboxView initial={inbox} />
    </PageFrame>
  );
}
