'use client';

import type { RequestItem, TaskItem, Turn } from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import { clsx } from 'clsx';
import { memo, type ReactNode, useCallback, useMemo } from 'react';
import { LastSignal, useHasPassed } from '@/components/ui/clock';
import { CopyButton } from '@/components/ui/copy-button';
import { LateReport, Moment, RunningClock } from '@/components/ui/day';
import { Glyph } from '@/components/ui/glyph';
import { useLastSignalAt, useLiveness } from '@/components/ui/liveness';
import { Name } from '@/components/ui/name';
import { ShowInLog, useIsLocked } from '@/components/ui/time-lock';
import { nameText } from '@/components/ui/verbatim';
import { ErrorText } from '@/components/ui/verbatim-text';
import { hasExpired } from './call-state';
import { ItemList } from './item-list';
import { useTranscriptSlots } from './transcript-slots';
import { turnName, turnTitle } from './turn-cause';
import { TurnHeader } from './turn-header';

/** The line at the left of a turn: accented for turns that the agent started. */
const SPINE: Record<Turn['kind'], string> = {
  user: 'border-line',
  'between-run': 'border-accent',
  none: 'border-line border-dashed',
};

export const TurnArticle = memo(function TurnArticle({ turn, flash }: { turn: Turn; flash: boolean }) {
  const slots = useTranscriptSlots();
  const taskIds = turn.trigger?.taskIds;
  const triggered = useMemo(() => new Set(taskIds), [taskIds]);
  // The header already shows the outcome of the waking tasks.
  const renderTask = useCallback(
    (item: TaskItem, call: React.ReactNode) => {
      if (item.phase !== 'started' && triggered.has(item.id)) {
        const task = slots.findTask(item);
        if (task !== null && slots.hasCard(task)) return null;
      }
      return slots.renderTask(item, call);
    },
    [slots, triggered],
  );
  const isLocked = useIsLocked(`turn-${turn.id}`);
  const startedBy = useCallback((item: TaskItem) => slots.findTask(item)?.toolCallId ?? null, [slots]);

  return (
    <article
      id={`turn-${turn.id}`}
      aria-label={nameText(turnName(turn, slots))}
      tabIndex={-1}
      data-turn={turn.id}
      className={clsx(
        'group/turn grid scroll-mt-4 grid-cols-[minmax(0,1fr)] focus-quiet sm:grid-cols-[60px_minmax(0,1fr)]',
        flash && 'animate-flash',
        isLocked && 'shadow-[inset_2px_0_var(--ink-2)]',
      )}
    >
      <Moment
        at={turn.startedAt}
        className={clsx(
          'hidden pt-3 pr-3 text-right text-2xs leading-[18px]! sm:col-start-1 sm:row-start-1 sm:block',
          isLocked ? 'text-ink' : 'text-ink-3',
        )}
      />
      <div
        className={clsx(
          'mt-3 mb-2 ml-2 min-w-0 border-l-2 pr-4 pl-3 sm:col-start-2 sm:row-start-1 sm:ml-0 sm:pr-6 sm:pl-6',
          SPINE[turn.kind],
        )}
      >
        {(turn.kind === 'between-run' || turn.trigger?.kind === 'timer') && <TurnHeader turn={turn} />}
        {turn.kind === 'user' && <h2 className="sr-only">User turn</h2>}
        {turn.kind === 'none' && <h2 className="sr-only">Outside any turn</h2>}
        {turn.omitted !== undefined && turn.omitted > 0 && (
          <p className="tabular my-2 text-ink-3 text-xs">
            … {turn.omitted.toLocaleString('en')} earlier items are not shown.
          </p>
        )}
        <ItemList
          items={turn.items}
          endedAt={turn.endedAt}
          queued={turn.kind === 'none'}
          renderTask={renderTask}
          renderRequest={slots.renderRequest}
          startedBy={startedBy}
        />
        <TurnFooter turn={turn} />
      </div>
      {/* After the turn's content in tab order. */}
      <ShowInLog
        anchor={`turn-${turn.id}`}
        name={turnTitle(turn, slots)}
        className={clsx(
          'mt-[34px] mr-3 self-start justify-self-end max-sm:hidden sm:col-start-1 sm:row-start-1',
          !isLocked && 'pointer-coarse:opacity-100 opacity-0 focus-visible:opacity-100 group-hover/turn:opacity-100',
        )}
      />
    </article>
  );
});

/** The end of a turn: its clock or duration, and buttons to copy from it. */
export function TurnFooter({ turn }: { turn: Turn }) {
  const slots = useTranscriptSlots();
  if (turn.kind === 'none') return null;
  // On wide screens the button is beside the turn's time.
  const inLog = <ShowInLog anchor={`turn-${turn.id}`} name={turnTitle(turn, slots)} className="sm:hidden" />;
  if (turn.state === 'open') return <OpenFooter turn={turn} inLog={inLog} />;
  const hasAnswer = turn.items.some((item) => item.kind === 'message' && item.role === 'assistant' && item.text !== '');
  return (
    <footer className="mt-1 text-2xs text-ink-3">
      {turn.state === 'failed' && (
        <div className="my-1 flex items-start gap-2 text-failed text-xs">
          <Glyph name="failed" className="mt-[3px]" />
          <div className="min-w-0">
            {turn.error === null ? (
              'The turn failed. The agent gave no reason.'
            ) : (
              <ErrorText text={turn.error.message} />
            )}
            {turn.error?.code != null && (
              <span className="ml-2 font-mono text-2xs">
                <Name text={turn.error.code} />
              </span>
            )}
          </div>
        </div>
      )}
      {turn.state === 'interrupted' && (
        <p className="my-1 flex items-center gap-2 text-ink-2 text-xs">
          <Glyph name="stopped" />
          Interrupted
        </p>
      )}
      {turn.state === 'finished' && isSilent(turn) && <p className="my-1 text-xs">The turn ended without an answer.</p>}
      <p className="tabular flex h-5 items-center gap-3">
        <Moment at={turn.startedAt} className="sm:hidden" />
        {turn.endedAt !== null && <span>{formatDuration(turn.endedAt - turn.startedAt)}</span>}
        {turn.inferred && (
          <span title="The agent did not report the end of this turn. Interlude inferred it from the agent’s silence or next turn.">
            end inferred
          </span>
        )}
        <span className="flex items-center gap-3 pointer-coarse:opacity-100 opacity-0 transition-opacity focus-within:opacity-100 group-hover/turn:opacity-100">
          {hasAnswer && <CopyButton label="Copy answer" text={() => answerOf(turn)} />}
          <CopyButton label="Copy link to turn" icon="link" text={() => slots.linkTo(`turn-${turn.id}`)} />
          {inLog}
        </span>
      </p>
    </footer>
  );
}

function OpenFooter({ turn, inLog }: { turn: Turn; inLog: ReactNode }) {
  const { stopped, silence, turnReportedAt } = useLiveness();
  const lastSignalAt = useLastSignalAt();
  const request = turn.items.find((item): item is RequestItem => item.kind === 'request' && item.outcome === null);
  const since = { since: request?.receivedAt ?? turn.startedAt, isServerTime: request !== undefined };
  const isOver = useHasPassed(request?.expiresAt ?? null);
  if (stopped !== null) {
    return (
      <p className="tabular mt-1.5 flex items-center gap-2 text-2xs text-waiting">
        <Glyph name="lost" />
        <span>
          {stopped.why}, {request === undefined ? 'worked' : 'waited'} <RunningClock {...since} /> until the last signal
        </span>
        {inLog}
      </p>
    );
  }
  if (request !== undefined && hasExpired(request, isOver)) {
    return (
      <p className="tabular mt-1.5 flex items-center gap-2 text-2xs text-ink-3">
        <Glyph name="lost" />
        No one answered in time
        {inLog}
      </p>
    );
  }
  return (
    <p className="tabular mt-1.5 flex items-center gap-2 text-2xs text-ink-3">
      <Glyph name={request !== undefined ? 'waiting' : silence === 'stalled' ? 'stalled' : 'working'} />
      <span>
        <LateReport
          what="Turn started"
          at={request === undefined ? turn.startedAt : undefined}
          reportedAt={turnReportedAt ?? 0}
        >
          {request === undefined ? 'Turn open for' : 'Waiting for an answer'} <RunningClock {...since} />
        </LateReport>
        {request === undefined && lastSignalAt !== null && <LastSignal at={lastSignalAt} />}
      </span>
      {inLog}
    </p>
  );
}

/** The agent's answer as written. */
function answerOf(turn: Turn): string {
  return turn.items
    .flatMap((item) => (item.kind === 'message' && item.role === 'assistant' ? [item.text] : []))
    .join('\n\n');
}

function isSilent(turn: Turn): boolean {
  return !turn.items.some(
    (item) => item.kind === 'tool-call' || (item.kind === 'message' && item.role === 'assistant'),
  );
}
