'use client';

import { useEffect } from 'react';
import { comparePositions, type Position } from '@/lib/protocol/position';
import type { AgentDetail, Insight } from '@/lib/protocol/read-models';
import { seeFailures } from './see-failures';

/** A failure has been seen when it stood there at two looks, one so long after the other. */
const LOOK_MS = 1_000;

/**
 * Marks failures as seen that somebody sees: they stand in the window, uncovered, in a tab that is looked at. Wherever
 * one is shown it says so by `data-insight`, or as a line of the log by `data-line`.
 *
 * Ordering: only what has nothing unseen before it is marked, as the server marks all up to a position.
 * Failure: a mark that did not arrive is sent again at the next look.
 */
export function useSeenWhileShown({ agent, insights }: Pick<AgentDetail, 'agent' | 'insights'>): void {
  const agentId = agent.id;
  const unseen = unseenOf(insights)
    .map(({ position }) => position)
    .join(' ');
  useEffect(() => {
    if (unseen === '') return;
    const positions = unseen.split(' ');
    const shown = new Set<Position>();
    const seen = new Set<Position>();
    let isSending = false;
    const look = async () => {
      for (const position of positions) {
        if (!isShown(position)) shown.delete(position);
        else if (shown.has(position)) seen.add(position);
        else shown.add(position);
      }
      const first = positions.findIndex((position) => !seen.has(position));
      const upTo = first < 0 ? positions.at(-1) : positions[first - 1];
      if (upTo === undefined || isSending) return;
      isSending = true;
      await seeFailures(agentId, upTo).catch(() => undefined);
      isSending = false;
    };
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [agentId, unseen]);
}

/** Oldest first. */
export function unseenOf(insights: readonly Insight[]): Insight[] {
  return insights
    .filter(({ isFailure, seenAt }) => isFailure && seenAt === null)
    .sort((a, b) => comparePositions(a.position, b.position));
}

function isShown(position: Position): boolean {
  if (document.visibilityState !== 'visible') return false;
  const element = document.querySelector(`[data-insight="${position}"], [data-line="${position}"]`);
  if (element === null) return false;
  const { left, top, width, height } = element.getBoundingClientRect();
  const there = document.elementFromPoint(left + Math.min(width / 2, 200), top + Math.min(height / 2, 20));
  return there !== null && element.contains(there);
}
