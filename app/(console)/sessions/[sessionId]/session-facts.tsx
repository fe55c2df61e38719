'use client';

import type { AgentSummary, SessionSummary } from '@interlude/protocol/read-models';
import { hasCrashed, isActiveState } from '@interlude/protocol/session-predicates';
import { withoutQuotes } from '@interlude/protocol/text';
import { clsx } from 'clsx';
import { ObligationsButton } from '@/components/obligations/obligations-button';
import { describeState, failuresInWords, glyphOf, sessionTitle } from '@/components/sessions/session-labels';
import { Evidence, StateWhy } from '@/components/sessions/state-why';
import { shortPath } from '@/components/tasks/task-words';
import { Ago, LastSignal } from '@/components/ui/clock';
import { LateReport, RunningClock } from '@/components/ui/day';
import { plural } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { Link } from '@/components/ui/link';
import { Name, Words } from '@/components/ui/name';
import { toPlainText } from '@/components/ui/plain-text';
import { nameText } from '@/components/ui/verbatim';

/** Shrinks the name to six characters before the line wraps. */
const AGENT = 'min-w-[6ch] max-w-[30ch] truncate max-lg:max-w-fit max-lg:flex-[1_1_6ch]';

export function SessionTitle({ session }: { session: SessionSummary }) {
  const title = sessionTitle(session);
  return (
    <h1
      dir="auto"
      className="min-w-0 truncate font-medium text-md max-sm:line-clamp-2 max-sm:whitespace-normal"
      title={nameText(title)}
    >
      <Words text={title} />
    </h1>
  );
}

/** A session's state, agent and folder on one line. On a phone, the details have what doesn't fit. */
export function SessionFacts(props: {
  session: SessionSummary;
  agent: AgentSummary | null;
  /** False in embeds, which have no agent pages. */
  hasLinks: boolean;
}) {
  const { session, agent, hasLinks } = props;
  // Shown elsewhere: a crash in the state, a request on its card.
  const isShown = hasCrashed(session) || session.state === 'needs-input';
  const reason = isShown ? null : session.stateReason;
  const beganAt = session.stateOccurredAt ?? session.stateSince;
  return (
    <p className="flex min-w-0 items-center gap-x-3 whitespace-nowrap text-ink-3 text-xs max-xl:flex-wrap">
      {/* Narrow pages cut long words first and the state last. Phones wrap the state instead. */}
      <span className="flex max-w-full shrink-0 items-center gap-1.5 text-ink-2">
        <Glyph name={glyphOf(session)} />
        <span className="truncate max-sm:whitespace-normal">{describeState(session)}</span>
        <StateWhy session={session} />
      </span>
      {/* On a phone, only the note above the composer shows the evidence. */}
      <span className={clsx('tabular shrink-0', session.away !== null && 'max-sm:hidden')}>
        {session.away !== null ? (
          <Evidence away={session.away} />
        ) : isActiveState(session.state) ? (
          <RunningClock since={beganAt} isServerTime />
        ) : (
          <LateReport at={beganAt} isServerTime reportedAt={session.stateSince}>
            <Ago at={session.stateSince} inWords />
          </LateReport>
        )}
        {session.state === 'working' && <LastSignal at={session.lastHeardAt} className="max-md:hidden" />}
      </span>
      {session.away === null && reason !== null && (
        <span dir="auto" className="min-w-0 truncate text-ink-3 max-lg:hidden">
          “<Words text={withoutQuotes(toPlainText(reason))} />”
        </span>
      )}
      <SessionPlace session={session} agent={agent} hasLinks={hasLinks} />
    </p>
  );
}

/** A session's agent and folder, and what is amiss. */
export function SessionPlace(props: { session: SessionSummary; agent: AgentSummary | null; hasLinks: boolean }) {
  const { session, agent, hasLinks } = props;
  const path = `/agents/${encodeURIComponent(session.agentId)}`;
  const folder = agent?.status?.cwd;
  return (
    <>
      {hasLinks ? (
        <Link href={path} className={`${AGENT} hit-line hover:text-ink hover:underline`}>
          <Name text={session.agentId} />
        </Link>
      ) : (
        <span className={AGENT}>
          <Name text={session.agentId} />
        </span>
      )}
      {typeof folder === 'string' && (
        <span className="min-w-0 truncate font-mono text-2xs max-xl:hidden" title={nameText(folder)}>
          <Name text={shortPath(folder)} />
        </span>
      )}
      <ObligationsButton session={session} />
      {session.insightCount > 0 &&
        (hasLinks ? (
          <Link href={`${path}#failures`} className="text-failed underline underline-offset-2 max-sm:hidden">
            {failuresInWords(session)}
          </Link>
        ) : (
          <span className="text-failed max-sm:hidden">{failuresInWords(session)}</span>
        ))}
      {session.lostCount > 0 && (
        <span className="text-waiting max-sm:hidden">{plural(session.lostCount, 'record')} lost</span>
      )}
      {session.quarantinedCount > 0 && (
        <span className="text-waiting max-sm:hidden">{plural(session.quarantinedCount, 'record')} rejected</span>
      )}
    </>
  );
}
