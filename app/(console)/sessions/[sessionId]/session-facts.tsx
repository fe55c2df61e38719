'use client';

import type { SessionSummary } from '@interlude/protocol/read-models';
import { withoutQuotes } from '@interlude/protocol/text';
import { ObligationsButton } from '@/components/obligations/obligations-button';
import {
  describeState,
  failuresInWords,
  glyphOf,
  isTimed,
  listedStateOf,
  sessionTitle,
} from '@/components/sessions/session-labels';
import { Evidence, StateWhy } from '@/components/sessions/state-why';
import { Ago, LastSignal, RunningClock } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { Link } from '@/components/ui/link';
import { Name, Words } from '@/components/ui/name';
import { toPlainText } from '@/components/ui/plain-text';
import { nameText } from '@/components/ui/verbatim';

/** A session's title, state and agent. */
export function SessionFacts(props: {
  session: SessionSummary;
  taskCount: number;
  onTasks: () => void;
  /** False in embeds, which have no agent pages. */
  hasLinks: boolean;
}) {
  const { session, taskCount, onTasks, hasLinks } = props;
  const agent = `/agents/${encodeURIComponent(session.agentId)}`;
  return (
    <div className="min-w-0 flex-1">
      <h1 dir="auto" className="w-fit max-w-full truncate font-medium text-md" title={nameText(sessionTitle(session))}>
        <Words text={sessionTitle(session)} />
      </h1>
      <p className="flex flex-wrap items-center gap-x-3 text-ink-3 text-xs">
        <span className="flex min-w-0 max-w-full items-center gap-1.5 text-ink-2">
          <Glyph name={glyphOf(listedStateOf(session))} />
          <span className="shrink-0">{describeState(session)}</span>
          <StateWhy session={session} />
          {session.away === null && session.stateReason !== null && (
            <span dir="auto" className="truncate text-ink-3 max-[440px]:hidden">
              “<Words text={withoutQuotes(toPlainText(session.stateReason))} />”
            </span>
          )}
          {session.away !== null ? (
            // On a phone, only the note above the composer shows the evidence.
            <span className="max-sm:hidden">
              <Evidence away={session.away} />
            </span>
          ) : isTimed(session) ? (
            <RunningClock since={session.stateSince} className="text-ink-3" />
          ) : (
            // A fixed width, so that the ticking clock moves nothing after it.
            <Ago at={session.stateSince} className="min-w-[4ch] text-ink-3" />
          )}
          {session.state === 'working' && <LastSignal at={session.lastHeardAt} className="text-ink-3" />}
        </span>
        {hasLinks ? (
          <Link href={agent} className="min-w-0 truncate hover:text-ink hover:underline">
            <Name text={session.agentId} />
          </Link>
        ) : (
          <span className="min-w-0 truncate">
            <Name text={session.agentId} />
          </span>
        )}
        <ObligationsButton session={session} />
        {session.insightCount > 0 &&
          (hasLinks ? (
            <Link href={`${agent}#failures`} className="text-failed underline underline-offset-2">
              {failuresInWords(session)}
            </Link>
          ) : (
            <span className="text-failed">{failuresInWords(session)}</span>
          ))}
        {session.lostCount > 0 && <span className="text-waiting">{plural(session.lostCount, 'record')} lost</span>}
        {session.quarantinedCount > 0 && (
          <span className="text-waiting">{plural(session.quarantinedCount, 'record')} rejected</span>
        )}
        {taskCount > 0 && (
          <button type="button" onClick={onTasks} className="hover:text-ink hover:underline 2xl:hidden">
            {plural(taskCount, 'task')}
          </button>
        )}
      </p>
    </div>
  );
}
