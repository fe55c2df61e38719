'use client';

import { clsx } from 'clsx';
import { ChevronRight } from 'lucide';
import { useState } from 'react';
import { Icon } from '@/components/ui/icon';
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
              <button
                type="button"
                aria-expanded={isOpen}
                onClick={() => setOpen(isOpen ? open.filter((one) => one !== name) : [...open, name])}
                className="hit -ml-1 flex items-center gap-1 hover:text-ink"
              >
                <Icon of={ChevronRight} size={12} className={clsx('transition-transform', isOpen && 'rotate-90')} />
                {name}
              </button>
            </h2>
            {isOpen && <OnDemand code={code} name={name} props={{}} />}
          </section>
        );
      })}
    </div>
  );
}
