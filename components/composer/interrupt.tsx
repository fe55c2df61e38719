'use client';

import type { AgentSummary } from '@interlude/protocol/read-models';
import { Square } from 'lucide';
import { useCallback, useLayoutEffect, useRef } from 'react';
import { useActionState, useActions } from '@/components/live/actions';
import { useRefusal } from '@/components/live/refusals';
import { plural } from '@/components/ui/duration';
import { Icon } from '@/components/ui/icon';
import { useLiveness } from '@/components/ui/liveness';
import { SETTLE_MS, useSettled } from '@/components/ui/misclick-guard';
import { useTitleWithKey } from '@/components/ui/shortcuts/use-shortcuts';

export const interruptKey = (turnId: string) => `interrupt:${turnId}`;

/** Effect of an interrupt on the turn and its background tasks, as known for this kind of agent. */
export function interruptEffect(agent: AgentSummary | null, runningTasks: number): string {
  if (runningTasks === 0) return 'Interrupting ends this turn.';
  const tasks = runningTasks === 1 ? 'Its background task keeps' : `Its ${runningTasks} background tasks keep`;
  // The runner asks Claude Code to keep subagents alive. Shells always survive.
  if (agent?.kind === 'claude') return `Interrupting ends this turn. ${tasks} running.`;
  return `Interrupting ends this turn. ${plural(runningTasks, 'background task')} may stop, too.`;
}

/** Interrupts the open turn. @returns null if it can't be interrupted */
export function useInterrupt(turnId: string | null): {
  turnId: string;
  isRequested: boolean;
  failure: string | null;
  request: () => void;
  /** For the shortcut: ignores a press that may have been meant for the previous turn. */
  press: () => void;
} | null {
  const actions = useActions();
  const state = useActionState(interruptKey(turnId ?? ''));
  const { stopped } = useLiveness();
  const refusal = useRefusal('interrupt');
  // A queued interrupt would hit the turn of the next runner.
  const isOffered = actions !== null && turnId !== null && stopped === null && refusal === null;
  const isIntended = useShownLongEnough(isOffered ? turnId : null);
  if (!isOffered) return null;
  const isRequested = state?.kind === 'sending' || state?.kind === 'accepted';
  const request = () => void actions.request(interruptKey(turnId), '/interrupt', { turnId });
  return {
    turnId,
    isRequested,
    failure: state?.kind === 'failed' ? state.reason : null,
    request,
    press: () => {
      if (!isRequested && isIntended()) request();
    },
  };
}

export function InterruptButton(props: {
  turnId: string;
  isRequested: boolean;
  describedBy: string;
  effect: string;
  onPress: () => void;
}) {
  const { turnId, isRequested, describedBy, effect, onPress } = props;
  const button = useRef<HTMLButtonElement>(null);
  const withKey = useTitleWithKey('turn.interrupt');
  const { settled, isIntended } = useSettled(button, turnId);
  const { isAway } = useLiveness();
  return (
    <button
      ref={button}
      type="button"
      onClick={() => isIntended() && onPress()}
      disabled={isRequested}
      aria-disabled={isRequested || !settled}
      title={withKey(effect)}
      aria-keyshortcuts="Control+. Meta+."
      aria-describedby={describedBy}
      className="flex h-7 shrink-0 items-center gap-1.5 rounded px-2 text-ink-2 text-xs transition-colors duration-300 hover:bg-raised hover:text-ink aria-disabled:cursor-default aria-disabled:text-ink-3 aria-disabled:hover:bg-transparent"
    >
      <Icon of={Square} size={10} fill="currentColor" />
      {isAway ? (isRequested ? 'Interrupt queued' : 'Queue interrupt') : isRequested ? 'Interrupting…' : 'Interrupt'}
    </button>
  );
}

/**
 * Misclick guard for a shortcut: returns true once its subject has been on screen for `SETTLE_MS`.
 *
 * @param of identifies the subject; null if there is none
 */
export function useShownLongEnough(of: string | null): () => boolean {
  const shownSince = useRef<number | null>(null);

  // A layout effect, so that no key press falls between the paint and the update.
  useLayoutEffect(() => {
    if (of === null) return;
    const restart = () => {
      shownSince.current = document.visibilityState === 'visible' ? performance.now() : null;
    };
    restart();
    document.addEventListener('visibilitychange', restart);
    return () => {
      document.removeEventListener('visibilitychange', restart);
      shownSince.current = null;
    };
  }, [of]);

  return useCallback(() => shownSince.current !== null && performance.now() - shownSince.current >= SETTLE_MS, []);
}
