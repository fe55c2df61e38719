'use client';

import type { InboxList } from '@interlude/protocol/inbox';
import { useState } from 'react';
import { useInitialData } from '@/components/live/use-fleet';
import { RequestBoardProvider } from '@/components/requests/request-board';
import { FoldButton } from '@/components/ui/list-controls';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
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
        <NotificationChannels />
      </RequestBoardProvider>
    </AnswerStoresProvider>
  );
}

const CHANNELS = [
  { name: 'Notifications', code: new CodeOnDemand(async () => (await import('./notice-panel')).NoticePanel) },
  { name: 'Webhook', code: new CodeOnDemand(async () => (await import('./webhook-panel')).WebhookPanel) },
];

/** Notification settings at the end of the inbox, folded. */
function NotificationChannels() {
  const [open, setOpen] = useState<readonly string[]>([]);
  return (
    <div className="flex flex-col gap-1 pt-4">
      {CHANNELS.map(({ name, code }) => {
        const isOpen = open.includes(name);
        return (
          <section key={name} aria-label={name}>
            <h2 className="text-2xs text-ink-3">
              <FoldButton
                isOpen={isOpen}
                onToggle={() => setOpen(isOpen ? open.filter((one) => one !== name) : [...open, name])}
                className="hover:text-ink"
              >
                {name}
              </FoldButton>
            </h2>
            {isOpen && <OnDemand code={code} name={name} props={{}} />}
          </section>
        );
      })}
    </div>
  );
}
