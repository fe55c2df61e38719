'use client';

import { clsx } from 'clsx';
import Link from 'next/link';
import { memo } from 'react';
import { Ago, RunningClock } from '@/components/ui/clock';
import { plural } from '@/components/ui/duration';
import { Glyph } from '@/components/ui/glyph';
import { LastHeard } from '@/components/ui/last-heard';
import { Name, Words } from '@/components/ui/name';
import { plainWords } from '@/components/ui/plain-words';
import type { SessionSummary } from '@/lib/protocol/read-models';
import { describeState, failuresInWords, glyphOf, sessionTitle, standingOf } from './session-words';

/**
 * One session in the list: what it is, whose, in what state, and what was said last. Narrow it takes three lines, in a
 * wide list one.
 */
export const SessionRow = memo(function SessionRow({
  session,
  current,
}: {
  session: SessionSummary;
  current: boolean;
}) {
  return (
    <Link
      href={`/sessions/${encodeURIComponent(session.id)}`}
      aria-current={current ? 'page' : undefined}
      data-session-row={session.id}
      prefetch={false}
      className={clsx(
        'group/row relative grid grid-cols-[12px_minmax(0,1fr)_auto] items-baseline gap-x-2.5 px-4 py-2 -outline-offset-2',
        '@3xl:grid-cols-[12px_minmax(0,5fr)_minmax(0,7fr)_minmax(0,150px)_52px] @3xl:gap-x-5 @3xl:py-1.5',
        current ? 'bg-raised' : 'hover:bg-raised/60',
      )}
    >
      <Glyph
        name={glyphOf(standingOf(session))}
        className={clsx('relative top-[1.5px] row-start-1', needsLook(session) && 'scale-110')}
      />
      <span className="col-start-2 row-start-1 flex min-w-0 items-baseline gap-2">
        <span dir="auto" className={clsx('truncate', session.state === 'done' ? 'text-ink-2' : 'font-medium text-ink')}>
          <Words text={sessionTitle(session)} />
        </span>
      </span>
      <span className="tabular col-start-3 row-start-1 text-2xs text-ink-3 @3xl:col-start-5 @3xl:text-right">
        {session.away !== null ? (
          <Ago at={session.away.lastHeardAt} />
        ) : session.state === 'working' || session.state === 'waiting' ? (
          <RunningClock since={session.stateSince} />
        ) : (
          <Ago at={session.lastEventAt} />
        )}
      </span>
      <span className="col-start-2 col-end-4 row-start-2 flex min-w-0 items-baseline gap-2 text-xs text-ink-3 @3xl:col-start-4 @3xl:col-end-5 @3xl:row-start-1">
        <span className="truncate">
          <Name text={session.agentId} />
        </span>
        <StateWord session={session} />
        {session.state === 'working' && <LastHeard at={session.lastHeardAt} className="shrink-0" />}
        <Marks session={session} />
      </span>
      <span
        dir="auto"
        className="col-start-2 col-end-4 row-start-3 max-w-full justify-self-start truncate text-xs text-ink-2 empty:hidden @3xl:col-end-4 @3xl:col-start-3 @3xl:row-start-1"
      >
        <Words text={lastLine(session)} />
      </span>
    </Link>
  );
});

function StateWord({ session }: { session: SessionSummary }) {
  const said = describeState(session);
  return (
    <>
      <span className="sr-only">, {said}</span>
      {session.runningTaskCount > 0 && session.away === null && (
        <span aria-hidden="true" className="flex shrink-0 items-baseline gap-1 text-ink-2">
          <Glyph name="running" className="relative top-[1.5px] scale-90" />
          {plural(session.runningTaskCount, 'task')}
        </span>
      )}
    </>
  );
}

function Marks({ session }: { session: SessionSummary }) {
  return (
    <>
      {session.lastTurnKind === 'between-run' && (
        <span className="flex shrink-0 items-baseline gap-1 text-accent" title="The agent started its last turn itself">
          <Glyph name="woken" className="relative top-[1.5px] scale-90" />
          <span className="sr-only">Woke by itself</span>
        </span>
      )}
      {session.owedCount > 0 && (
        <span className="shrink-0" title={`${plural(session.owedCount, 'message')} without a reply`}>
          owes {session.owedCount}
        </span>
      )}
      {session.insightCount > 0 && (
        <span className="shrink-0 text-failed">{failuresInWords(session.insightCount)}</span>
      )}
      {session.lostCount > 0 && <span className="shrink-0 text-waiting">{session.lostCount} lost</span>}
      {session.quarantinedCount > 0 && (
        <span className="shrink-0 text-waiting">{session.quarantinedCount} quarantined</span>
      )}
    </>
  );
}

function lastLine({ state, stateReason, lastText }: SessionSummary): string {
  const reason = plainWords(stateReason ?? '');
  if (reason !== '' && needsLook({ state })) return reason;
  return plainWords(lastText ?? '') || reason;
}

function needsLook({ state }: Pick<SessionSummary, 'state'>): boolean {
  return state === 'failed' || state === 'waiting';
}
