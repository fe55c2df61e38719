'use client';

import type { AgentSummary } from '@interlude/protocol/read-models';
import { useState } from 'react';
import { askLevel, type LevelChoice } from './ask-level';

interface Asking {
  serial: number;
  choice: LevelChoice;
  /** The agent's row when it was asked. */
  before: AgentSummary;
  isAnswered: boolean;
  failure: string | null;
}

/**
 * Asks one agent's runner for a level. What was asked is `pending` until the agent's row tells of it; the row is the one
 * place that knows what came of it.
 */
export function useAskLevel(agent: AgentSummary) {
  const [asking, setAsking] = useState<Asking | null>(null);
  const ask = async (choice: LevelChoice) => {
    const serial = (asking?.serial ?? 0) + 1;
    setAsking({ serial, choice, before: agent, isAnswered: false, failure: null });
    const answer = await askLevel(agent.id, choice);
    const failure = answer.kind === 'failed' ? answer.reason : null;
    // An answer that comes after a later question says nothing any more.
    setAsking((latest) => (latest?.serial === serial ? { ...latest, isAnswered: true, failure } : latest));
  };
  return {
    pending: asking !== null && asking.failure === null && !isTold(asking, agent) ? asking.choice : null,
    failure: asking?.failure ?? null,
    ask: (choice: LevelChoice) => void ask(choice),
  };
}

function isTold({ before, isAnswered }: Asking, agent: AgentSummary): boolean {
  if (agent.logLevel.desired?.requestedAt !== before.logLevel.desired?.requestedAt) return true;
  // Confirmed before anybody looked: a default that was taken up is no wish any more.
  return isAnswered && agent.updatedPosition !== before.updatedPosition;
}
