'use client';

import { comparePositions, type Position } from '@interlude/protocol/position';
import type { AgentDetail, Insight, InsightsSeen } from '@interlude/protocol/read-models';
import { type ReactNode, useEffect, useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { postJson } from '@/components/live/fetch-json';
import { VisibleRows, VisibleRowsContext } from '@/components/ui/visible-rows';

/** A failure has been seen when it stood there at two looks, one so long after the other. */
const LOOK_MS = 1_000;

/**
 * Marks failures as seen once somebody sees them: they stand in the window, uncovered, in a tab that is looked at. The
 * rows in here that show one report whether they are in sight.
 *
 * Ordering: only what has nothing unseen before it is marked, as the server marks all up to a position.
 * Failure: a mark that did not arrive is sent again at the next look.
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
    const look = async () => {
      clearTimeout(timer);
      const isLookedAt = document.visibilityState === 'visible';
      // No event tells when something that covers a row goes away.
      if (isLookedAt && rows.isAnyInWindow) timer = setTimeout(look, LOOK_MS);
      const shown = isLookedAt ? rows.uncovered() : new Set<Position>();
      const now = performance.now();
      for (const position of positions) {
        if (!shown.has(position)) since.delete(position);
        else if (!since.has(position)) since.set(position, now);
        else if (now - (since.get(position) ?? now) >= LOOK_MS) seen.add(position);
      }
      const first = positions.findIndex((position) => !seen.has(position));
      const upTo = first < 0 ? positions.at(-1) : positions[first - 1];
      if (upTo === undefined || isSending) return;
      isSending = true;
      await seeFailures(agentId, upTo).catch(() => undefined);
      isSending = false;
    };
    const stop = rows.watch(new Set(positions), look);
    document.addEventListener('visibilitychange', look);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', look);
      stop();
    };
  }, [agentId, unseen, rows, mayAct]);
  return <VisibleRowsContext value={rows}>{children}</VisibleRowsContext>;
}

/** Tells the server that a person has looked at an agent's failures up to this one. */
export function seeFailures(agentId: string, upTo: Position): Promise<InsightsSeen> {
  return postJson(`/agents/${encodeURIComponent(agentId)}/insights/seen`, { upTo });
}

/** Oldest first. */
export function unseenOf(insights: readonly Insight[]): Insight[] {
  return insights
    .filter(({ isFailure, seenAt }) => isFailure && seenAt === null)
    .sort((a, b) => comparePositions(a.position, b.position));
}
