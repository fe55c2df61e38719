'use client';

import type { AgentSummary } from '@interlude/protocol/read-models';
import { useMayAct } from '@/components/access/may-act';
import { LevelLimit } from './level-limit';
import { LevelLine } from './level-line';
import { LevelRadios } from './level-radios';
import { useAskLevel } from './use-ask-level';

/**
 * Turns the level at which an agent's runner writes its log, and shows what came of it: what is asked and what is
 * written are two things until the runner says that they are one.
 */
export function LevelSwitch({ agent }: { agent: AgentSummary }) {
  const mayAct = useMayAct();
  const { pending, failure, ask } = useAskLevel(agent);
  const { level, by, base, desired } = agent.logLevel;
  const wish = pending ?? (desired?.state === 'refused' ? null : desired);
  const isSet = desired === null ? by !== null : desired.level !== null;
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5 text-xs">
      {/* the same five words also choose what is shown: whose they are must be seen */}
      <span aria-hidden="true" className="-mr-1 text-ink-3">
        Runner writes
      </span>
      <LevelRadios
        asked={wish === null ? level : (wish.level ?? base)}
        written={level}
        isOff={!mayAct}
        onPick={(to) => ask({ level: to })}
      />
      {mayAct && pending === null && desired !== null && desired.level !== null && desired.state !== 'refused' && (
        <LevelLimit desired={desired} onPick={(ttlSeconds) => ask({ level: desired.level, ttlSeconds })} />
      )}
      {mayAct && isSet && pending === null && (
        <button type="button" onClick={() => ask({ level: null })} className="text-ink-3 underline hover:text-ink">
          Back to default
        </button>
      )}
      {pending === null ? (
        <LevelLine agent={agent} />
      ) : (
        <span className="text-ink-3">asking for {pending.level ?? 'the default'}…</span>
      )}
      {!mayAct && <span className="text-ink-3">You can look here, and not change it.</span>}
      {failure !== null && (
        <span role="alert" className="text-failed">
          Not asked: {failure}
        </span>
      )}
    </div>
  );
}
