'use client';

import { useStored } from '@/components/ui/browser-storage';
import { useHydrated } from '@/components/ui/clock';
import { FoldButton } from '@/components/ui/list-controls';
import { CodeOnDemand, OnDemand } from '@/components/ui/on-demand';
import { useMedia } from '@/components/ui/use-media';

const chartsCode = new CodeOnDemand(async () => (await import('./fleet-charts')).FleetCharts);

/** The charts of the fleet, above its board. They fold, and stay as they were left. */
export function BoardActivity() {
  const [chosen, choose] = useStored('fold-activity');
  // On a phone they would stand between the reader and the agents.
  const isWide = useMedia('(min-width: 640px)');
  const isKnown = useHydrated();
  const isOpen = chosen === null ? isWide : chosen === 'open';
  return (
    <section aria-label="Activity" className="pb-3">
      <h2 className="pb-1 font-medium text-xs">
        <FoldButton isOpen={isOpen} onToggle={() => choose(isOpen ? 'folded' : 'open')} className="hover:text-accent">
          Activity
        </FoldButton>
      </h2>
      {/* What the server renders leaves the room that most have it open in: then nothing moves. */}
      {!isKnown && <div className="hidden min-h-44 sm:block" />}
      {isKnown && isOpen && (
        <div className="min-h-44">
          <OnDemand code={chartsCode} name="The charts" props={{}} />
        </div>
      )}
    </section>
  );
}
