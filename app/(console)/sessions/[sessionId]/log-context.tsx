'use client';

import { formatDuration } from '@interlude/protocol/time';
import { clsx } from 'clsx';
import { X } from 'lucide';
import { formatLogTime, useLogSettings } from '@/components/logs/log-settings';
import type { Span, TurnAtLine } from '@/components/time-lock/time-lock';
import { useNow } from '@/components/ui/clock';
import { Icon } from '@/components/ui/icon';
import { JumpLink } from '@/components/ui/jump';
import { Words } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';

/** Something of the transcript, and where it is. */
export interface Named {
  anchor: string;
  title: string;
}

/** What ties the log to the transcript just now: the span it is brought to, and what ran when the chosen line was written. */
export function LogContext(props: {
  held: (Named & { span: Span }) | null;
  ran: { found: TurnAtLine; turn: Named | null; tasks: readonly Named[] } | null;
  onRelease: () => void;
}) {
  const { held, ran, onRelease } = props;
  const isEmpty = held === null && ran === null;
  return (
    <div
      className={clsx(
        'flex shrink-0 flex-wrap items-baseline gap-x-5 gap-y-0.5 px-3 text-ink-3 text-xs sm:px-4',
        !isEmpty && 'border-t py-1',
      )}
    >
      {held !== null && (
        <p className="flex min-w-0 max-w-full items-baseline gap-2">
          <span aria-hidden="true" className="h-3 w-0.5 shrink-0 self-center bg-ink-2" />
          <Place {...held} />
          <SpanOf span={held.span} />
          <button
            type="button"
            aria-label={`Let go of ${nameText(held.title)}`}
            title="Let go"
            onClick={onRelease}
            className="hit shrink-0 self-center hover:text-ink"
          >
            <Icon of={X} size={12} />
          </button>
        </p>
      )}
      {/* Said also to who does not see the transcript move. */}
      <p role="status" className="flex min-w-0 max-w-full flex-wrap items-baseline gap-x-1.5">
        {ran !== null && <Ran {...ran} held={held?.anchor ?? null} />}
      </p>
    </div>
  );
}

function SpanOf({ span: { from, to } }: { span: Span }) {
  return (
    <span className="tabular shrink-0 text-2xs">
      <LogTime at={from} />
      {to === Number.POSITIVE_INFINITY ? ' until now' : ` for ${formatDuration(to - from)}`}
    </span>
  );
}

function Ran(props: { found: TurnAtLine; turn: Named | null; tasks: readonly Named[]; held: string | null }) {
  const { found, turn, tasks, held } = props;
  const { answer, error } = found;
  if (error !== null) return <span className="text-failed">What ran then is not known: {error}</span>;
  if (answer === null) return null;
  return (
    <>
      <LogTime at={found.at} />
      {turn === null && <span>before the first turn</span>}
      {turn !== null && <span>{answer.running ? 'in' : 'after'}</span>}
      {turn !== null && (turn.anchor === held ? <span>that turn</span> : <Place {...turn} />)}
      {tasks.length > 0 && <span>while {tasks.length === 1 ? 'a task' : `${tasks.length} tasks`} ran:</span>}
      {tasks.map((task) => (
        <Place key={task.anchor} {...task} />
      ))}
    </>
  );
}

/** Said as the log says it. */
function LogTime({ at }: { at: number }) {
  const [{ isUtc }] = useLogSettings();
  return <time className="tabular shrink-0 text-2xs">{useNow((now) => formatLogTime(at, isUtc, now))}</time>;
}

function Place({ anchor, title }: Named) {
  return (
    <JumpLink
      anchor={anchor}
      className="min-w-0 truncate text-ink-2 underline decoration-line-strong underline-offset-3 hover:text-ink"
    >
      <bdi>
        <Words text={title} />
      </bdi>
    </JumpLink>
  );
}
