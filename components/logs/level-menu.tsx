'use client';

import type { AgentSummary } from '@interlude/protocol/read-models';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { FilterPopover } from './filter-popover';

const switchCode = new CodeOnDemand(async () => (await import('./level-switch')).LevelSwitch);

/** The log level of an agent's runner, as a setting beside the filters of its log. */
export function LevelMenu({ agent }: { agent: AgentSummary }) {
  const { level, desired } = agent.logLevel;
  const isOpen = desired !== null && desired.state !== 'refused' && desired.level !== null && desired.level !== level;
  usePreload(switchCode);
  return (
    <FilterPopover
      label="Runner writes"
      hasLabel
      chosen={`${level ?? 'unknown'}${isOpen ? ` → ${desired.level}` : ''}`}
      align="end"
    >
      <p className="mb-2 text-ink-3">
        The agent’s runner writes lines of this level and above. “Show” only filters them.
      </p>
      <OnDemand code={switchCode} name="The log level" props={{ agent }} />
    </FilterPopover>
  );
}
