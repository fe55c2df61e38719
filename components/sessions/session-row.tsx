'use client';

import type { SessionSummary } from '@interlude/protocol/read-models';
import { listedStateOf, needsAttention } from '@interlude/protocol/session-predicates';
import { clsx } from 'clsx';
import { Fragment, memo } from 'react';
import { Ago, TimeOfDay, useLastSignal } from '@/components/ui/clock';
import { Glyph, type GlyphName } from '@/components/ui/glyph';
import { Link } from '@/components/ui/link';
import { Name, ToolLine, Words } from '@/components/ui/name';
import { describeState, glyphOf, lastLine, marksOf, type SessionMark, sessionTitle } from './session-labels';

/**
 * A session in the list: title, agent, state, last text and the time in that state. `.session-row` places them.
 *
 * @param isPreviewed true if the pane beside the list shows the session
 */
export const SessionRow = memo(function SessionRow(props: {
  session: SessionSummary;
  current: boolean;
  isPreviewed?: boolean;
  /** True if Tab skips it. */
  isSkipped?: boolean;
}) {
  const { session, current, isPreviewed, isSkipped } = props;
  const marks = marksOf(session);
  const silence = useLastSignal(session.lastHeardAt);
  const lastSignal = session.state === 'working' ? silence : '';
  const isUrgent = needsAttention(session);
  return (
    <Link
      href={`/sessions/${encodeURIComponent(session.id)}`}
      aria-current={current ? 'page' : undefined}
      data-session-row={session.id}
      tabIndex={isSkipped ? -1 : undefined}
      prefetch={false}
      className={clsx(
        'session-row text-row -outline-offset-2',
        current ? 'bg-raised' : 'hover:bg-raised/60',
        isPreviewed && 'xl:bg-raised!',
      )}
    >
      <Glyph
        name={glyphOf(session)}
        isStill={silence !== ''}
        className={clsx('relative top-[1.5px]', isUrgent && 'scale-110')}
      />
      <span
        dir="auto"
        className={clsx(
          'max-w-full justify-self-start truncate [grid-area:title]',
          listedStateOf(session) === 'exited' ? 'text-ink-2' : 'font-medium text-ink',
        )}
      >
        <Words text={sessionTitle(session)} />
      </span>
      <Ago at={session.stateOccurredAt ?? session.stateSince} className="text-2xs text-ink-3" />
      <span className="flex min-w-0 items-baseline gap-2 text-ink-3 text-xs [grid-area:agent]">
        {/* The name leaves room for the widest mark, but keeps a third. */}
        <span data-agent-name className="min-w-0 truncate">
          <Name text={session.agentId} />
        </span>
        <span className="sr-only">, {describeState(session)}</span>
        {marks.length + lastSignal.length > 0 && (
          <Marks marks={marks} lastSignal={lastSignal} isSilent={silence !== ''} />
        )}
      </span>
      {/* The height stays when the first text arrives: rows below must not move under the pointer. */}
      <span
        dir="auto"
        className="min-h-[1lh] max-w-full justify-self-start truncate text-ink-2 text-xs [grid-area:text]"
      >
        {session.state === 'needs-input' && session.request?.kind === 'permission' ? (
          <ToolLine {...session.request} />
        ) : (
          <Words text={lastLine(session, isUrgent)} />
        )}
      </span>
    </Link>
  );
});

/** The marks that fit on one line, whole; the title has all. The last signal precedes pending replies and tasks. */
function Marks(props: { marks: readonly SessionMark[]; lastSignal: string; isSilent: boolean }) {
  const { marks, lastSignal, isSilent } = props;
  return (
    <span
      className="flex h-[1lh] min-w-min max-w-2/3 flex-1 flex-wrap gap-x-1.5 overflow-hidden"
      title={[...marks.map(({ text }) => text), lastSignal].filter(Boolean).join(', ')}
    >
      {marks.map(({ kind, text, title, since }) => (
        <Fragment key={kind}>
          {/* Screen readers read the tasks as part of the state. */}
          <span className={clsx('max-w-full truncate', COLOUR[kind])} title={title} aria-hidden={kind === 'tasks'}>
            {GLYPH[kind] && (
              <Glyph
                name={GLYPH[kind]}
                isStill={isSilent}
                className="relative top-[1.5px] mr-1 inline-block scale-90 align-baseline"
              />
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
      {lastSignal !== '' && <span className="max-w-full truncate">{lastSignal}</span>}
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
  obligations: 'order-1',
  tasks: 'order-1 text-ink-2',
};

const GLYPH: Partial<Record<SessionMark['kind'], GlyphName>> = { woken: 'woken', tasks: 'running' };
