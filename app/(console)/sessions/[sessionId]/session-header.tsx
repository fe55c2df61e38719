'use client';

import { clsx } from 'clsx';
import { ChevronLeft, Logs } from 'lucide';
import Link from 'next/link';
import { ConnectionBadge } from '@/components/live/connection-badge';
import { OwedReplies } from '@/components/obligations/owed-replies';
import { Evidence } from '@/components/sessions/away-evidence';
import { SessionMenu } from '@/components/sessions/session-menu';
import {
  describeState,
  failuresInWords,
  glyphOf,
  isTimed,
  sessionTitle,
  standingOf,
} from '@/components/sessions/session-words';
import { StateWhy } from '@/components/sessions/state-why';
import { useSession } from '@/components/sessions/use-sessions';
import { Ago, RunningClock } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { Icon } from '@/components/ui/icon';
import { LastHeard } from '@/components/ui/last-heard';
import { Name, Words } from '@/components/ui/name';
import { plainWords } from '@/components/ui/plain-words';
import { nameText } from '@/components/ui/verbatim';
import { SettingsLink } from '../../settings-link';
import { useSessionScope } from './session-scope';

/** What session this is, whose, and how it stands since when. */
export function SessionHeader(props: {
  taskCount: number;
  onTasks: () => void;
  log: { id: string; open: boolean; toggle: () => void };
}) {
  const { taskCount, onTasks, log } = props;
  const session = useSession(useSessionScope().sessionId);
  return (
    <header className="flex shrink-0 items-start gap-3 border-line border-b px-4 py-2.5 sm:px-6">
      <Link href="/" className="hit mt-[2px] -ml-1 text-ink-3 hover:text-ink lg:hidden">
        <Icon of={ChevronLeft} size={17} />
        <span className="sr-only">Sessions</span>
      </Link>
      <div className="min-w-0 flex-1">
        <h1
          dir="auto"
          className="w-fit max-w-full truncate font-medium text-md"
          title={nameText(sessionTitle(session))}
        >
          <Words text={sessionTitle(session)} />
        </h1>
        <p className="flex flex-wrap items-center gap-x-3 text-ink-3 text-xs">
          <span className="flex min-w-0 max-w-full items-center gap-1.5 text-ink-2">
            <Glyph name={glyphOf(standingOf(session))} />
            <span className="shrink-0">{describeState(session)}</span>
            <StateWhy session={session} />
            {session.away === null && session.stateReason !== null && (
              <span dir="auto" className="truncate text-ink-3 max-[440px]:hidden">
                <Words text={plainWords(session.stateReason)} />
              </span>
            )}
            {session.away !== null ? (
              // On a phone there is no room for it twice: the note above the composer has it.
              <span className="max-sm:hidden">
                <Evidence away={session.away} />
              </span>
            ) : isTimed(session) ? (
              <RunningClock since={session.stateSince} className="text-ink-3" />
            ) : (
              // As wide as it gets: what stands behind it, and what hangs from that, is not moved as it ticks.
              <Ago at={session.stateSince} className="min-w-[4ch] text-ink-3" />
            )}
            {session.state === 'working' && <LastHeard at={session.lastHeardAt} className="text-ink-3" />}
          </span>
          <Link
            href={`/agents/${encodeURIComponent(session.agentId)}`}
            className="min-w-0 truncate hover:text-ink hover:underline"
          >
            <Name text={session.agentId} />
          </Link>
          <OwedReplies session={session} />
          {session.insightCount > 0 && (
            <Link
              href={`/agents/${encodeURIComponent(session.agentId)}#failures`}
              className="text-failed underline underline-offset-2"
            >
              {failuresInWords(session)}
            </Link>
          )}
          {session.lostCount > 0 && <span className="text-waiting">{plural(session.lostCount, 'record')} lost</span>}
          {session.quarantinedCount > 0 && (
            <span className="text-waiting">{plural(session.quarantinedCount, 'record')} in quarantine</span>
          )}
          {taskCount > 0 && (
            <button type="button" onClick={onTasks} className="hover:text-ink hover:underline 2xl:hidden">
              {plural(taskCount, 'task')}
            </button>
          )}
        </p>
      </div>
      {/* On a phone what the badge says must not take room from the title when it says more. */}
      <div className="mt-[3px] flex items-center gap-4 max-sm:flex-row-reverse">
        {/* Where there is room for the list of sessions, it stands above that; on a phone its sign-out is in the menu. */}
        <span className="hidden sm:flex lg:hidden">
          <SettingsLink />
        </span>
        <SessionMenu session={session} />
        <button
          type="button"
          aria-expanded={log.open}
          aria-controls={log.open ? log.id : undefined}
          title="The agent’s log (l)"
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
