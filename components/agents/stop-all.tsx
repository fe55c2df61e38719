'use client';

import type { AgentSummary } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { plural } from '@/components/ui/duration';
import { SettledButton } from '@/components/ui/misclick-guard';
import { Modal } from '@/components/ui/modal';
import { quoted } from '@/components/ui/verbatim';
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
  /** The agents that the board lists, or the page's one. */
  agents: readonly AgentSummary[];
  /** True if these are all agents. */
  areAll: boolean;
  isAsking: boolean;
  onAnswer: () => void;
}) {
  const { agents, areAll, isAsking, onAnswer } = props;
  const [agent] = agents;
  const title = areAll
    ? 'Stop all agents?'
    : agents.length === 1 && agent !== undefined
      ? `Stop ${quoted(agent.id)}?`
      : `Stop the ${plural(agents.length, 'listed agent')}?`;
  const { state, isBusy, run, retry, clear } = useEachAgent();
  const start = (what: string, countOf: (agent: AgentSummary) => number, job: AgentJob) => {
    const affected = agents.filter((agent) => countOf(agent) > 0);
    run(what, affected, job);
    onAnswer();
  };
  return (
    <>
      {isAsking && (
        <Modal label={title} onClose={onAnswer} className="m-auto w-[min(360px,calc(100vw-32px))] rounded-lg">
          <div className="flex flex-col gap-2 px-5 py-4 text-xs">
            <h2 className="mb-1 font-medium text-md">{title}</h2>
            <Choice
              agents={agents}
              countOf={inTurnCount}
              isBusy={isBusy}
              verb="Interrupt"
              effect="Open turns end. Sessions stay open."
              onPress={() => start('Interrupt', inTurnCount, interruptAll)}
            />
            <Choice
              agents={agents}
              countOf={openCount}
              isBusy={isBusy}
              verb="End"
              effect="Agents and runners exit. This can’t be undone."
              isDestructive
              onPress={() => start('End sessions', openCount, endAll)}
            />
            <button type="button" onClick={onAnswer} className={`${QUIET} hit self-end`}>
              Cancel
            </button>
          </div>
        </Modal>
      )}
      {state !== null && (
        <section aria-label="Stop" className={`${BAR} flex items-start gap-4`}>
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

/** `Interrupt 25 sessions of 12 agents`, with the effect. */
function Choice(props: {
  agents: readonly AgentSummary[];
  countOf: (agent: AgentSummary) => number;
  isBusy: boolean;
  verb: string;
  effect: string;
  isDestructive?: boolean;
  onPress: () => void;
}) {
  const { agents, countOf, isBusy, verb, effect, isDestructive = false, onPress } = props;
  const count = sumOf(agents, countOf);
  if (count === 0) return <p className="text-ink-2">Nothing to {verb.toLowerCase()}.</p>;
  const affected = agents.filter((agent) => countOf(agent) > 0);
  return (
    <SettledButton
      // Not the number, which changes while agents work.
      of={`${verb} ${agents.map(({ id }) => id).join('\n')}`}
      disabled={isBusy}
      onPress={onPress}
      className={clsx(
        'block w-full rounded border border-line-strong px-3 py-2 text-left hover:bg-raised aria-disabled:text-ink-3',
        isDestructive && 'text-failed',
      )}
    >
      <span className="block font-medium">
        {verb} {plural(count, 'session')}
        {agents.length > 1 && ` of ${plural(affected.length, 'agent')}`}
      </span>
      <span className="block text-2xs text-ink-3">{effect}</span>
    </SettledButton>
  );
}
