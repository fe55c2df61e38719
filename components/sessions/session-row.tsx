'use client';

import type { SessionSummary } from '@interlude/protocol/read-models';
import { listedStateOf, needsAttention } from '@interlude/protocol/session-predicates';
import { clsx } from 'clsx';
import { Fragment, memo } from 'react';
import { Ago, RunningClock, TimeOfDay, useLastSignal } from '@/components/ui/clock';
import { Glyph, type GlyphName } from '@/components/ui/glyph';
import { Link } from '@/components/ui/link';
import { Name, Words } from '@/components/ui/name';
import { useTimeFormat } from '@/components/ui/time-format';
import { describeState, glyphOf, isTimed, lastLine, marksOf, type SessionMark, sessionTitle } from './session-labels';

/**
 * A session in the list: title, agent, state and last text, in one line where the list is wide, else in three.
 */
export const SessionRow = memo(function SessionRow({
  session,
  current,
}: {
  session: SessionSummary;
  current: boolean;
}) {
  const marks = marksOf(session);
  const silence = useLastSignal(session.lastHeardAt);
  const lastSignal = session.state === 'working' ? silence : '';
  const isUrgent = needsAttention(session);
  // A duration beside times of day would read as one.
  const isAbsolute = useTimeFormat()?.settings.isAbsolute === true;
  const isAlone = marks.length === 0 && lastSignal === '';
  return (
    <Link
      href={`/sessions/${encodeURIComponent(session.id)}`}
      aria-current={current ? 'page' : undefined}
      data-session-row={session.id}
      prefetch={false}
      className={clsx(
        'group/row relative grid grid-cols-[12px_minmax(0,1fr)_auto] items-baseline gap-x-2.5 list-row px-4 text-row -outline-offset-2',
        '@3xl:grid-cols-[12px_minmax(0,5fr)_minmax(0,6fr)_minmax(0,5fr)_64px] @3xl:gap-x-5 @3xl:list-row-line',
        '@7xl:grid-cols-[12px_minmax(0,5fr)_minmax(0,7fr)_400px_64px]',
        current ? 'bg-raised' : 'hover:bg-raised/60',
      )}
    >
      <Glyph
        name={glyphOf(listedStateOf(session))}
        className={clsx('relative top-[1.5px] row-start-1', isUrgent && 'scale-110')}
      />
      <span
        dir="auto"
        className={clsx(
          'col-start-2 row-start-1 max-w-full justify-self-start truncate',
          listedStateOf(session) === 'exited' ? 'text-ink-2' : 'font-medium text-ink',
        )}
      >
        <Words text={sessionTitle(session)} />
      </span>
      <span className="tabular col-start-3 row-start-1 whitespace-nowrap text-2xs text-ink-3 @3xl:col-start-5 @3xl:text-right">
        {session.away !== null ? (
          <Ago at={session.away.lastHeardAt} />
        ) : isTimed(session) && !isAbsolute ? (
          <RunningClock since={session.stateSince} />
        ) : (
          <Ago at={isTimed(session) ? session.stateSince : session.lastEventAt} />
        )}
      </span>
      <span className="col-start-2 col-end-4 row-start-2 flex min-w-0 items-baseline gap-2 text-ink-3 text-xs @3xl:col-start-4 @3xl:col-end-5 @3xl:row-start-1">
        {/* The marks take the space that the agent's name leaves, at least two fifths. */}
        <span data-agent-name className={clsx('shrink-0 truncate', isAlone ? 'max-w-full' : 'max-w-3/5')}>
          <Name text={session.agentId} />
        </span>
        <span className="sr-only">, {describeState(session)}</span>
        {!isAlone && <Marks marks={marks} lastSignal={lastSignal} />}
      </span>
      {/* The height stays when the first text arrives: rows below must not move under the pointer. */}
      <span
        dir="auto"
        className="col-start-2 col-end-4 row-start-3 min-h-[1lh] max-w-full justify-self-start truncate text-ink-2 text-xs @3xl:col-start-3 @3xl:col-end-4 @3xl:row-start-1"
      >
        <Words text={lastLine(session, isUrgent)} />
      </span>
    </Link>
  );
});

/** The marks in one line; the title has them in full. */
function Marks({ marks, lastSignal }: { marks: readonly SessionMark[]; lastSignal: string }) {
  return (
    <span
      className="min-w-0 flex-1 truncate"
      title={[...marks.map(({ text }) => text), lastSignal].filter(Boolean).join(', ')}
    >
      {marks.map(({ kind, text, title, since }) => (
        <Fragment key={kind}>
          {/* Screen readers read the tasks as part of the state. */}
          <span className={clsx('mr-1', COLOUR[kind])} title={title} aria-hidden={kind === 'tasks'}>
            {GLYPH[kind] && (
              <Glyph name={GLYPH[kind]} className="relative top-[1.5px] mr-1 inline-block scale-90 align-baseline" />
            )}
            {kind === 'woken' ? <span className="sr-only">{text}</span> : text}
            {since !== undefined && (
              <>
                {' since '}
                <TimeOfDay at={since} />
              </>
            )}
          </span>{' '}
        </Fragment>
      ))}
      {lastSignal}
    </span>
  );
}

const COLOUR: Record<SessionMark['kind'], string> = {
  woken: 'text-accent',
  note: 'text-waiting',
  unreachable: 'text-waiting',
  failures: 'text-failed',
  lost: 'text-waiting',
  quarantined: 'text-waiting',
  obligations: '',
  tasks: 'text-ink-2',
};

const GLYPH: Partial<Record<SessionMark['kind'], GlyphName>> = { woken: 'woken', tasks: 'running' };
