'use client';

import type { Task } from '@interlude/protocol/read-models';
import { useActionState, useActions } from '@/components/live/actions';
import { useRefusal, useSupportsCommand } from '@/components/live/refusals';
import { ConfirmButton } from '@/components/ui/confirm-button';
import { useLiveness } from '@/components/ui/liveness';
import { SettledButton } from '@/components/ui/misclick-guard';
import { Phrase } from '@/components/ui/name';
import { nameText, quoted } from '@/components/ui/verbatim';

export const stopKey = (task: Pick<Task, 'position'>) => `stop:${task.position}`;

/** Stops a running task. Needs two presses, because progress may be lost. */
export function TaskStop({ task }: { task: Task }) {
  const actions = useActions();
  const { stopped, isAway } = useLiveness();
  const refusal = useRefusal('task.stop');
  const key = stopKey(task);
  const state = useActionState(key);
  // Without a runner the task may be gone by the time the command arrives, and its id may be in use again.
  const isRunning = actions !== null && task.status === 'running' && stopped === null;
  if (!isRunning) return null;
  if (refusal !== null) {
    return (
      <span title={nameText(refusal.reason)}>
        Can’t be stopped here<span className="sr-only">: {nameText(refusal.reason)}</span>
      </span>
    );
  }
  if (state?.kind === 'sending' || state?.kind === 'accepted')
    return <span data-action={key}>{isAway ? 'Stop queued: the runner is offline' : 'Stopping…'}</span>;

  const request = () => {
    const run = task.runId === null ? {} : { runId: task.runId };
    actions.request(key, `/tasks/${encodeURIComponent(task.id)}/stop`, run);
  };
  return (
    <span data-action={key} aria-live="polite" className="flex min-w-0 flex-wrap items-baseline gap-x-2">
      {state?.kind === 'failed' && (
        <span className="text-failed">
          Could not stop the task: <Phrase text={state.reason} />
        </span>
      )}
      <ConfirmButton
        of={key}
        onPress={request}
        label={(isPressed) => `${isPressed ? 'Press again to stop' : 'Stop'} ${quoted(task.description)}`}
        looks={['hover:text-ink', 'font-medium text-failed aria-disabled:text-ink-2']}
      >
        {(isPressed) =>
          isPressed ? 'Press again to stop it' : state?.kind === 'failed' ? 'Try again' : isAway ? 'Queue stop' : 'Stop'
        }
      </ConfirmButton>
    </span>
  );
}

export const wakeKey = (task: Pick<Task, 'position'>) => `wake:${task.position}`;

/** Starts a turn with the result of an ended command that no turn has received. */
export function TaskWake({ task }: { task: Task }) {
  const actions = useActions();
  const { stopped, isAway } = useLiveness();
  const isSupported = useSupportsCommand('task.wake');
  const key = wakeKey(task);
  const state = useActionState(key);
  const hasEnded = task.status !== 'running' && task.presumed === undefined;
  const isUndelivered = task.answeredInTurnId === null && task.toldElsewhere === null && task.carriedBy === undefined;
  // Subagents report their own results.
  if (actions === null || !isSupported || stopped !== null || !hasEnded || !isUndelivered || task.kind === 'subagent')
    return null;
  if (state?.kind === 'sending' || state?.kind === 'accepted')
    return <span data-action={key}>{isAway ? 'Wake-up queued: the runner is offline' : 'Waking the agent…'}</span>;

  const request = () => {
    const run = task.runId === null ? {} : { runId: task.runId };
    actions.request(key, `/tasks/${encodeURIComponent(task.id)}/wake`, run);
  };
  return (
    <span data-action={key} aria-live="polite" className="flex min-w-0 flex-wrap items-baseline gap-x-2">
      {state?.kind === 'failed' && (
        <span className="text-failed">
          Could not wake the agent: <Phrase text={state.reason} />
        </span>
      )}
      <SettledButton
        of={key}
        onPress={request}
        label={`Wake the agent for ${quoted(task.description)}`}
        className="text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink aria-disabled:text-ink-3"
      >
        {state?.kind === 'failed' ? 'Try again' : isAway ? 'Queue wake-up' : 'Wake the agent'}
      </SettledButton>
    </span>
  );
}
