'use client';

import { clsx } from 'clsx';
import { ChevronRight } from 'lucide';
import { Icon } from '@/components/ui/icon';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { useMedia } from '@/components/ui/use-media';
import { useStored } from '@/components/ui/use-stored';

const chartsCode = new CodeOnDemand(async () => (await import('./fleet-charts')).FleetCharts);

/** The charts of the fleet, above its board. They fold, and stay as they were left. */
export function BoardActivity() {
  const [chosen, choose] = useStored('interlude:fold-activity');
  // On a phone they would stand between the reader and the agents.
  const isWide = useMedia('(min-width: 640px)');
  const isOpen = chosen === null ? isWide : chosen === 'open';
  return (
    <section aria-label="Activity" className="pb-3">
      <h2 className="pb-1 font-medium text-xs">
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={() => choose(isOpen ? 'folded' : 'open')}
          className="hit -ml-1 flex items-center gap-1 hover:text-accent"
        >
          <Icon of={ChevronRight} size={12} className={clsx('transition-transform', isOpen && 'rotate-90')} />
          Activity
        </button>
      </h2>
      {isOpen && (
        <div className="min-h-44">
          <OnDemand code={chartsCode} name="The charts" props={{}} />
        </div>
      )}
    </section>
  );
}
