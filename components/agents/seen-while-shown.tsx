'use client';

import { comparePositions, type Position } from '@interlude/protocol/position';
import type { AgentDetail, Insight, InsightsSeen } from '@interlude/protocol/read-models';
import { type ReactNode, useEffect, useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { postJson } from '@/components/live/fetch-json';
import { VisibleRows, VisibleRowsContext } from '@/components/ui/visible-rows';

/** Interval between checks. A failure that stays visible this long counts as seen. */
const CHECK_MS = 1_000;

/**
 * Marks failures as seen once they are in view, uncovered, in a visible tab. The rows inside report their visibility.
 *
 * Ordering: the server marks everything up to a position, so a failure is marked only after all earlier ones were seen.
 * Failure: a mark that failed is sent again at the next check.
 */
export function SeenWhileShown(props: Pick<AgentDetail, 'agent' | 'insights'> & { children: ReactNode }) {
  const { agent, insights, children } = props;
  const agentId = agent.id;
  const unseen = unseenOf(insights)
    .map(({ position }) => position)
    .join(' ');
  const mayAct = useMayAct();
  const [rows] = useState(() => new VisibleRows());
  useEffect(() => {
    if (unseen === '' || !mayAct) return;
    const positions = unseen.split(' ');
    const since = new Map<Position, number>();
    const seen = new Set<Position>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isSending = false;
    const check = async () => {
      clearTimeout(timer);
      const isVisible = document.visibilityState === 'visible';
      // No event fires when an overlay that covers a row disappears.
      if (isVisible && rows.isAnyInWindow) timer = setTimeout(check, CHECK_MS);
      const shown = isVisible ? rows.uncovered() : new Set<Position>();
      const now = performance.now();
      for (const position of positions) {
        if (!shown.has(position)) since.delete(position);
        else if (!since.has(position)) since.set(position, now);
        else if (now - (since.get(position) ?? now) >= CHECK_MS) seen.add(position);
      }
      const first = positions.findIndex((position) => !seen.has(position));
      const upTo = first < 0 ? positions.at(-1) : positions[first - 1];
      if (upTo === undefined || isSending) return;
      isSending = true;
      await seeFailures(agentId, upTo).catch(() => undefined);
      isSending = false;
    };
    const stop = rows.watch(new Set(positions), check);
    document.addEventListener('visibilitychange', check);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', check);
      stop();
    };
  }, [agentId, unseen, rows, mayAct]);
  return <VisibleRowsContext value={rows}>{children}</VisibleRowsContext>;
}

/** Marks an agent's failures up to a position as seen. */
export function seeFailures(agentId: string, upTo: Position): Promise<InsightsSeen> {
  return postJson(`/agents/${encodeURIComponent(agentId)}/insights/seen`, { upTo });
}

/** Oldest first. */
export function unseenOf(insights: readonly Insight[]): Insight[] {
  return insights
    .filter(({ isFailure, seenAt }) => isFailure && seenAt === null)
    .sort((a, b) => comparePositions(a.position, b.position));
}
