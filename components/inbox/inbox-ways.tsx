'use client';

import { useState } from 'react';
import { FoldButton } from '@/components/ui/list-controls';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';

const WAYS = [
  { name: 'Notifications', code: new CodeOnDemand(async () => (await import('./notice-panel')).NoticePanel) },
  { name: 'Webhook', code: new CodeOnDemand(async () => (await import('./webhook-panel')).WebhookPanel) },
];

/** At the end of the inbox, folded: who is told of it without looking at it. */
export function InboxWays() {
  const [open, setOpen] = useState<readonly string[]>([]);
  return (
    <div className="flex flex-col gap-1 pt-4">
      {WAYS.map(({ name, code }) => {
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
