'use client';

import type { AgentSummary } from '@interlude/protocol/read-models';
import { useMayAct } from '@/components/access/may-act';
import { BulkLevel } from '@/components/logs/bulk-level';
import { ConfirmButton } from '@/components/ui/confirm-button';
import { Name } from '@/components/ui/name';
import { interruptAll, markSeen, retire, takeBack } from './agent-jobs';
import { type AgentJob, useEachAgent } from './use-each-agent';

const QUIET = 'min-h-6 text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink';
const LOOKS = [QUIET, 'min-h-6 font-medium text-failed underline underline-offset-2 aria-disabled:text-ink-3'] as const;

/** What can be done with all agents that are selected, and what came of it for each. */
export function SelectionBar(props: {
  agents: readonly AgentSummary[];
  total: number;
  onAll: () => void;
  onNone: () => void;
}) {
  const { agents, total, onAll, onNone } = props;
  const mayAct = useMayAct();
  const { state, isBusy, run } = useEachAgent();
  const of = agents.map(({ id }) => id).join('\n');
  const working = agents.some(({ sessionStates }) => sessionStates.working > 0);
  const canRetire = agents.some(({ retiredAt }) => retiredAt === null);
  const start = (what: string, job: AgentJob) => run(what, agents, job);
  return (
    <section aria-label="Selected agents" className="sticky bottom-0 z-10 border-line-strong border-t bg-ground py-3">
      <div className="flex flex-wrap items-center gap-x-5 gap-y-2 text-xs">
        <span className="tabular font-medium">{agents.length} selected</span>
        {agents.length < total && (
          <button type="button" onClick={onAll} className={QUIET}>
            All {total}
          </button>
        )}
        <button type="button" onClick={onNone} className={QUIET}>
          None
        </button>
        {mayAct ? (
          <>
            <ConfirmButton
              of={`interrupt ${of}`}
              disabled={isBusy || !working}
              onPress={() => start('Interrupt', interruptAll)}
              looks={LOOKS}
            >
              {(isPressed) => (isPressed ? 'Press again: interrupt' : working ? 'Interrupt' : 'Interrupt: none works')}
            </ConfirmButton>
            <button type="button" disabled={isBusy} onClick={() => start('Mark seen', markSeen)} className={QUIET}>
              Mark seen
            </button>
            {canRetire ? (
              <ConfirmButton
                of={`retire ${of}`}
                disabled={isBusy}
                onPress={() => start('Retire', retire)}
                looks={LOOKS}
              >
                {(isPressed) => (isPressed ? 'Press again: retire' : 'Retire')}
              </ConfirmButton>
            ) : (
              <button type="button" disabled={isBusy} onClick={() => start('Take back', takeBack)} className={QUIET}>
                Take back
              </button>
            )}
          </>
        ) : (
          <span className="text-ink-2">You can look here, and ask nothing of them.</span>
        )}
      </div>
      {mayAct && (
        <div className="mt-2">
          <BulkLevel agents={agents} />
        </div>
      )}
      {state !== null && (
        <ul aria-label={`${state.what}: what came of it`} className="mt-2 max-h-32 overflow-y-auto text-xs">
          {[...state.outcomes].map(([id, outcome]) => (
            <li key={id} className="flex gap-x-3 py-0.5">
              <span className="w-40 shrink-0 truncate font-medium">
                <Name text={id} />
              </span>
              <span className={outcome?.hasFailed ? 'text-failed' : 'text-ink-2'}>
                {outcome === null ? `${state.what}…` : <Name text={outcome.words} most={400} />}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
