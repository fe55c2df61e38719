import type { RequestItem, ToolCallItem } from '@interlude/protocol/read-models';
import { formatDuration } from '@interlude/protocol/time';
import { clsx } from 'clsx';
import { RunningClock } from '@/components/ui/clock';
import { Glyph, type GlyphName } from '@/components/ui/glyph';
import { useLiveness } from '@/components/ui/liveness';
import { useHasPassed } from '@/components/ui/now';
import { type CallStanding, callStanding } from './call-standing';

/** Shorter calls don't show how long they took: on a calm page only what is worth reading is written. */
const NOTABLE_MS = 1_000;

/** How it stands with a call: what goes on has a clock, what waits for a person has none. */
export function CallStatus({ call, request }: { call: ToolCallItem; request: RequestItem | undefined }) {
  const { stopped } = useLiveness();
  const standing = callStanding(call, request, useHasPassed(request?.expiresAt ?? null));
  // While it waited for a person, nothing ran.
  const isAllowed = request?.outcome === 'allowed' || request?.outcome === 'answered';
  const began = isAllowed ? (request.resolvedAt ?? call.at) : call.at;
  const took = call.endedAt === null ? null : call.endedAt - began;
  // Whoever asked has gone.
  const isLeft = standing === 'waiting' && stopped !== null;
  const said = isLeft ? undefined : SAID[standing];
  const ran = standing === 'completed' || standing === 'failed';
  return (
    <span className="tabular flex shrink-0 items-center gap-1.5 text-2xs text-ink-3">
      {standing === 'running' && (
        <>
          <RunningClock since={began} />
          <Glyph name="running" />
          <span className="sr-only">{stopped === null ? 'running' : stopped.why}</span>
        </>
      )}
      {isLeft && (
        <>
          <Glyph name="lost" />
          <span className="sr-only">{stopped.why}</span>
        </>
      )}
      {ran && took !== null && took >= NOTABLE_MS && <span>{formatDuration(took)}</span>}
      {standing === 'completed' && <span className="sr-only">completed</span>}
      {said !== undefined && (
        <span className={clsx('flex items-center gap-1', said.className)}>
          {said.word}
          <Glyph name={said.glyph} />
        </span>
      )}
    </span>
  );
}

const SAID: Partial<Record<CallStanding, { word: string; glyph: GlyphName; className: string }>> = {
  failed: { word: 'failed', glyph: 'failed', className: 'text-failed' },
  waiting: { word: 'waiting for you', glyph: 'waiting', className: 'text-waiting' },
  denied: { word: 'denied', glyph: 'stopped', className: 'text-ink-2' },
  expired: { word: 'expired', glyph: 'lost', className: 'text-ink-2' },
  unknown: { word: 'no result', glyph: 'lost', className: 'text-ink-2' },
  withdrawn: { word: 'withdrawn', glyph: 'lost', className: 'text-ink-2' },
};
