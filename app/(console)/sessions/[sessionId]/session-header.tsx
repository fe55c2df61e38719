'use client';

import { clsx } from 'clsx';
import { ChevronLeft, Logs } from 'lucide';
import { SettingsLink } from '@/app/(console)/settings-link';
import { useMayAct } from '@/components/access/may-act';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { SessionMenu } from '@/components/sessions/session-menu';
import { useSession } from '@/components/sessions/use-sessions';
import { Icon } from '@/components/ui/icon';
import { Link } from '@/components/ui/link';
import { SessionFacts } from './session-facts';
import { useSessionScope } from './session-scope';

export function SessionHeader(props: {
  taskCount: number;
  onTasks: () => void;
  log: { id: string; open: boolean; toggle: () => void };
}) {
  const { taskCount, onTasks, log } = props;
  const mayAct = useMayAct();
  const session = useSession(useSessionScope().sessionId);
  return (
    <header className="flex shrink-0 items-start gap-3 border-line border-b px-4 py-2.5 sm:px-6">
      <Link href="/" className="hit mt-[2px] -ml-1 text-ink-3 hover:text-ink lg:hidden">
        <Icon of={ChevronLeft} size={17} />
        <span className="sr-only">Sessions</span>
      </Link>
      <SessionFacts session={session} taskCount={taskCount} onTasks={onTasks} hasLinks />
      {/* On a phone, a longer badge must not shrink the title. */}
      <div className="mt-[3px] flex items-center gap-4 max-sm:flex-row-reverse">
        {/* On wide screens, the link is above the list of sessions; on a phone, the menu has sign-out. */}
        <span className={clsx('lg:hidden', mayAct ? 'hidden sm:flex' : 'flex')}>
          <SettingsLink />
        </span>
        <SessionMenu session={session} />
        <button
          type="button"
          aria-expanded={log.open}
          aria-controls={log.open ? log.id : undefined}
          title="Agent log (l)"
          onClick={log.toggle}
          className={clsx('hit flex items-center gap-1.5 text-xs hover:text-ink', log.open ? 'text-ink' : 'text-ink-3')}
        >
          <Icon of={Logs} size={14} strokeWidth={1.75} />
          <span className="max-sm:sr-only">Log</span>
        </button>
        <div className="flex justify-end max-sm:min-w-20">
          <ConnectionBadge />
        </div>
      </div>
    </header>
  );
}
