'use client';

import type { RequestItem, Turn } from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import type { ReactNode } from 'react';
import { RunningClock, TimeOfDay } from '@/components/ui/clock';
import { CopyButton } from '@/components/ui/copy-button';
import { ErrorText } from '@/components/ui/error-text';
import { Glyph } from '@/components/ui/glyph';
import { LastHeard } from '@/components/ui/last-heard';
import { useHeardAt, useLiveness } from '@/components/ui/liveness';
import { Name } from '@/components/ui/name';
import { useHasPassed } from '@/components/ui/now';
import { ShowInLog } from '@/components/ui/time-lock';
import { hasLapsed } from './call-standing';
import { useTranscriptSlots } from './transcript-slots';
import { turnTitle } from './turn-title';

/** How a turn stands: running with its clock, or how long it took; and what can be taken from it. */
export function TurnFooter({ turn }: { turn: Turn }) {
  const slots = useTranscriptSlots();
  if (turn.kind === 'none') return null;
  // Where there is room it stands beside the turn's time.
  const inLog = <ShowInLog anchor={`turn-${turn.id}`} name={turnTitle(turn, slots)} className="sm:hidden" />;
  if (turn.state === 'open') return <OpenFooter turn={turn} inLog={inLog} />;
  const hasAnswer = turn.items.some((item) => item.kind === 'message' && item.role === 'assistant' && item.text !== '');
  return (
    <footer className="mt-1 text-2xs text-ink-3">
      {turn.state === 'failed' && (
        <div className="my-1 flex items-start gap-2 text-failed text-xs">
          <Glyph name="failed" className="mt-[3px]" />
          <div className="min-w-0">
            {turn.error === null ? 'The turn failed.' : <ErrorText text={turn.error.message} />}
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
      {turn.state === 'finished' && isSilent(turn) && <p className="my-1 text-xs">It ended without a word.</p>}
      <p className="tabular flex h-5 items-center gap-3">
        <TimeOfDay at={turn.startedAt} className="sm:hidden" />
        {turn.endedAt !== null && <span>{formatDuration(turn.endedAt - turn.startedAt)}</span>}
        {turn.inferred && (
          <span title="The agent did not say that this turn ended. Its silence did, or what it did next.">
            ended, by its silence
          </span>
        )}
        <span className="flex items-center gap-3 pointer-coarse:opacity-100 opacity-0 transition-opacity focus-within:opacity-100 group-hover/turn:opacity-100">
          {hasAnswer && <CopyButton label="Copy answer" text={() => answerOf(turn)} />}
          <CopyButton label="Copy link to turn" icon="link" text={() => linkTo(turn)} />
          {inLog}
        </span>
      </p>
    </footer>
  );
}

function OpenFooter({ turn, inLog }: { turn: Turn; inLog: ReactNode }) {
  const { stopped } = useLiveness();
  const heardAt = useHeardAt();
  const asked = turn.items.find((item): item is RequestItem => item.kind === 'request' && item.outcome === null);
  const since = asked?.at ?? turn.startedAt;
  const isOver = useHasPassed(asked?.expiresAt ?? null);
  if (stopped !== null) {
    return (
      <p className="tabular mt-1.5 flex items-center gap-2 text-2xs text-waiting">
        <Glyph name="lost" />
        {stopped.why}, {asked === undefined ? 'worked' : 'waited'} <RunningClock since={since} /> until last heard
        {inLog}
      </p>
    );
  }
  if (asked !== undefined && hasLapsed(asked, isOver)) {
    return (
      <p className="tabular mt-1.5 flex items-center gap-2 text-2xs text-ink-3">
        <Glyph name="lost" />
        Nobody answered in time
        {inLog}
      </p>
    );
  }
  return (
    <p className="tabular mt-1.5 flex items-center gap-2 text-2xs text-ink-3">
      <Glyph name={asked === undefined ? 'working' : 'waiting'} />
      {asked === undefined ? 'Working' : 'Waiting for an answer'} <RunningClock since={since} />
      {asked === undefined && heardAt !== null && <LastHeard at={heardAt} />}
      {inLog}
    </p>
  );
}

/** What the agent said in the turn, as it wrote it. */
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

function linkTo(turn: Turn): string {
  const url = new URL(location.href);
  url.hash = encodeURIComponent(`turn-${turn.id}`);
  return url.href;
}
