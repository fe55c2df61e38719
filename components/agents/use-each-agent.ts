'use client';

import type { AgentSummary } from '@interlude/protocol/read-models';
import { useState } from 'react';
import { forEachLimited } from '@/components/live/for-each-limited';

/** What came of it for an agent, in words. */
export interface Outcome {
  words: string;
  hasFailed: boolean;
}

/** What is done to one agent. @returns what came of it; what it throws is told as a failure */
export type AgentJob = (agent: AgentSummary) => Promise<string>;

/** Does the same to each of several agents, and keeps what came of it for each. */
export function useEachAgent() {
  const [state, setState] = useState<{ what: string; outcomes: ReadonlyMap<string, Outcome | null> } | null>(null);
  const run = async (what: string, agents: readonly AgentSummary[], job: AgentJob) => {
    const outcomes = new Map<string, Outcome | null>(agents.map(({ id }) => [id, null]));
    const tell = () => setState({ what, outcomes: new Map(outcomes) });
    tell();
    await forEachLimited(agents, async (agent) => {
      outcomes.set(
        agent.id,
        await job(agent).then(
          (words) => ({ words, hasFailed: false }),
          (error: Error) => ({ words: error.message, hasFailed: true }),
        ),
      );
      tell();
    });
  };
  const isBusy = state !== null && [...state.outcomes.values()].includes(null);
  return { state, isBusy, run: (...of: Parameters<typeof run>) => void run(...of) };
}
