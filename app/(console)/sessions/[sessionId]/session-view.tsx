'use client';

import { clsx } from 'clsx';
import { useState } from 'react';
import { TaskPanel } from '@/components/tasks/task-panel';
import { JumpProvider } from '@/components/ui/jump';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { SessionColumns, useSessionJump } from './session-columns';
import { SessionHeader } from './session-header';
import { LogPlace, SessionLog } from './session-log';
import { useNamedTasks } from './session-scope';
import { type SessionParts, type SessionStart, SessionStores } from './session-stores';
import { TabPanel, useSessionTab } from './session-tabs';
import { useLogPanel } from './use-log-panel';

const detailsCode = new CodeOnDemand(async () => (await import('./session-details')).SessionDetails);

interface SessionViewProps {
  sessionId: string;
  /** JSON of a SessionStart: an object would lose an agent's `__proto__` keys. */
  initial: string;
  nonce: string | undefined;
  /** `?tab=` of the URL. */
  tab: string;
  /** The configured URL of this dashboard; null if there is none. */
  publicUrl: string | null;
}

export function SessionView({ sessionId, initial: json, nonce, tab, publicUrl }: SessionViewProps) {
  const [initial] = useState(() => JSON.parse(json) as SessionStart);
  return (
    <SessionStores sessionId={sessionId} initial={initial} publicUrl={publicUrl}>
      {(parts) => <SessionPage nonce={nonce} tab={tab} {...parts} />}
    </SessionStores>
  );
}

/** A session's header and tabs. The log opens below the transcript or in its tab. */
function SessionPage({ nonce, tab: initial, ...parts }: SessionParts & { nonce: string | undefined; tab: string }) {
  const named = useNamedTasks();
  const tabs = useSessionTab(initial, true);
  const panel = useLogPanel(tabs);
  const jump = useSessionJump(tabs.showTranscript, 'push');
  usePreload(detailsCode);
  return (
    <main className="session-page flex h-full min-h-0 flex-col">
      <SessionHeader tabs={tabs} taskCount={named.tasks.length + named.omitted} log={panel} />
      <SessionLog panel={panel} tasks={named.tasks}>
        <div
          data-log={(panel.open && panel.isBelow) || undefined}
          className={clsx(
            'group/page relative flex min-h-0 flex-1 flex-col',
            named.tasks.length > 0 && '2xl:[--beside:320px]',
          )}
        >
          <TabPanel tabs={tabs} of="transcript">
            <SessionColumns {...parts} nonce={nonce} named={named} jump={jump} />
            {panel.isBelow && <LogPlace />}
          </TabPanel>
          <TabPanel tabs={tabs} of="tasks">
            <JumpProvider jump={jump}>
              <TaskPanel {...named} isWide />
            </JumpProvider>
          </TabPanel>
          <TabPanel tabs={tabs} of="log">
            {!panel.isBelow && <LogPlace />}
          </TabPanel>
          <TabPanel tabs={tabs} of="details">
            <OnDemand code={detailsCode} name="The details" props={{}} />
          </TabPanel>
        </div>
      </SessionLog>
    </main>
  );
}
