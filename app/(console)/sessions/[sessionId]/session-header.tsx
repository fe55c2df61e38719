'use client';

import { clsx } from 'clsx';
import { PanelBottom } from 'lucide';
import { BackLink } from '@/app/(console)/back-link';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { SessionMenu } from '@/components/sessions/session-menu';
import { Icon } from '@/components/ui/icon';
import { useTitleWithKey } from '@/components/ui/shortcuts/use-shortcuts';
import { SessionFacts, SessionTitle } from './session-facts';
import { useSessionRows } from './session-scope';
import { type SessionTab, SessionTabs, TABS, type TabId } from './session-tabs';
import type { useLogPanel } from './use-log-panel';

/** A session's title, state and tabs. They stay while its panels scroll. */
export function SessionHeader(props: { tabs: SessionTab; taskCount: number; log: ReturnType<typeof useLogPanel> }) {
  const { tabs, taskCount, log } = props;
  const withKey = useTitleWithKey('transcript.log');
  const { session, agent } = useSessionRows();
  return (
    <header className="shrink-0 border-line border-b px-4 pt-2 sm:px-6">
      <div className="flex items-center gap-3">
        <BackLink href="/" label="Sessions" />
        <SessionTitle session={session} />
        <div className="ml-auto flex shrink-0 items-center gap-4 max-sm:gap-3">
          <span className="lg:not-icons:hidden">
            <ConnectionBadge />
          </span>
          <SessionMenu session={session} />
        </div>
      </div>
      <SessionFacts session={session} agent={agent} hasLinks />
      <div className="flex items-center justify-between">
        <SessionTabs tabs={tabs} of={Object.keys(TABS) as TabId[]} counts={{ tasks: taskCount }} />
        {log.isBelow && (
          <button
            type="button"
            aria-label="Log below the transcript"
            aria-expanded={log.open}
            aria-controls={log.open ? log.id : undefined}
            title={withKey('Log below the transcript')}
            onClick={log.toggle}
            className={clsx('hit hover:text-ink', log.open ? 'text-ink' : 'text-ink-3')}
          >
            <Icon of={PanelBottom} size={15} strokeWidth={1.75} />
          </button>
        )}
      </div>
    </header>
  );
}
