'use client';

import type { AgentSummary } from '@interlude/protocol/read-models';
import type { RefObject } from 'react';
import { plural } from '@/components/ui/duration';
import { SettledButton } from '@/components/ui/misclick-guard';
import { ButtonPopover } from '@/components/ui/popover';
import {
  type AgentJob,
  BAR,
  endAll,
  inTurnCount,
  interruptAll,
  Outcomes,
  openCount,
  QUIET,
  sumOf,
  useEachAgent,
} from './selection-bar';

/** Asks how to stop the listed agents, then shows progress and the outcome for each. */
export function StopAll(props: {
  button: RefObject<HTMLElement | null>;
  /** The agents that the board lists. */
  agents: readonly AgentSummary[];
  isAsking: boolean;
  onAnswer: () => void;
}) {
  const { button, agents, isAsking, onAnswer } = props;
  const { state, isBusy, run, retry, clear } = useEachAgent();
  const start = (what: string, countOf: (agent: AgentSummary) => number, job: AgentJob) => {
    const affected = agents.filter((agent) => countOf(agent) > 0);
    run(what, affected, job);
    onAnswer();
  };
  return (
    <>
      {isAsking && (
        <ButtonPopover label="Stop all" button={button} align="end" onClose={onAnswer} className="w-72 py-1.5 text-xs">
          <Choice
            agents={agents}
            countOf={inTurnCount}
            isBusy={isBusy}
            verb="Interrupt"
            effect="Ends their current turns. Sessions stay open."
            none="No agent in this list is in a turn."
            onPress={() => start('Interrupt', inTurnCount, interruptAll)}
          />
          <Choice
            agents={agents}
            countOf={openCount}
            isBusy={isBusy}
            verb="End"
            effect="Agents and runners exit. This can’t be undone."
            none="No agent in this list has an open session."
            onPress={() => start('End sessions', openCount, endAll)}
          />
        </ButtonPopover>
      )}
      {state !== null && (
        <section aria-label="Stop all" className={`${BAR} flex items-start gap-4`}>
          <div className="min-w-0 flex-1">
            <Outcomes {...state} isBusy={isBusy} onRetry={retry} />
          </div>
          {!isBusy && (
            <button type="button" onClick={clear} className={`${QUIET} mt-2 text-xs`}>
              Close
            </button>
          )}
        </section>
      )}
    </>
  );
}

/** `Interrupt 25 sessions`, with the number of agents and the effect. */
function Choice(props: {
  agents: readonly AgentSummary[];
  countOf: (agent: AgentSummary) => number;
  isBusy: boolean;
  verb: string;
  effect: string;
  none: string;
  onPress: () => void;
}) {
  const { agents, countOf, isBusy, verb, effect, none, onPress } = props;
  const count = sumOf(agents, countOf);
  if (count === 0) return <p className="px-3 py-1.5 text-ink-2">{none}</p>;
  const affected = agents.filter((agent) => countOf(agent) > 0);
  return (
    <SettledButton
      // Not the number, which changes while agents work.
      of={`${verb} ${agents.map(({ id }) => id).join('\n')}`}
      disabled={isBusy}
      onPress={onPress}
      className="block w-full px-3 py-1.5 text-left hover:bg-raised aria-disabled:text-ink-3"
    >
      <span className="block font-medium">
        {verb} {plural(count, 'session')}
      </span>
      <span className="block text-2xs text-ink-3">
        Of {plural(affected.length, 'agent')}. {effect}
      </span>
    </SettledButton>
  );
}
