'use client';

import { clsx } from 'clsx';
import { ChevronRight } from 'lucide';
import { useState } from 'react';
import { Icon } from '@/components/ui/icon';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';

const panelCode = new CodeOnDemand(async () => (await import('./webhook-panel')).WebhookPanel);

/** At the end of the inbox, folded: who is told of it besides. */
export function WebhookFold() {
  const [isOpen, setOpen] = useState(false);
  return (
    <section aria-labelledby="webhook" className="pt-4">
      <h2 id="webhook" className="text-2xs text-ink-3">
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
          className="hit -ml-1 flex items-center gap-1 hover:text-ink"
        >
          <Icon of={ChevronRight} size={12} className={clsx('transition-transform', isOpen && 'rotate-90')} />
          Webhook
        </button>
      </h2>
      {isOpen && <OnDemand code={panelCode} name="The webhook" props={{}} />}
    </section>
  );
}
