'use client';

import type { Task } from '@interlude/protocol/read-models';
import { useActionState, useActions } from '@/components/live/actions';
import { useIsTaken, useRefusal } from '@/components/live/refusals';
import { useLiveness } from '@/components/ui/liveness';
import { Name } from '@/components/ui/name';
import { PressTwice } from '@/components/ui/press-twice';
import { SettledButton } from '@/components/ui/settled-button';
import { nameText, quoted } from '@/components/ui/verbatim';

export const stopKey = (task: Pick<Task, 'position'>) => `stop:${task.position}`;

/** Stops a running task: pressed twice, because what it has done so far may be lost. */
export function TaskStop({ task }: { task: Task }) {
  const actions = useActions();
  const { stopped, isAway } = useLiveness();
  const refusal = useRefusal('task.stop');
  const key = stopKey(task);
  const state = useActionState(key);
  // One that nobody runs any more may not be there when its runner is: what waited would stop something else.
  const isRunning = actions !== null && task.status === 'running' && stopped === null;
  if (!isRunning) return null;
  if (refusal !== null) {
    return (
      <span title={nameText(refusal.reason)}>
        Can’t be stopped here<span className="sr-only">: {nameText(refusal.reason)}</span>
      </span>
    );
  }
  if (state?.kind === 'sending' || state?.kind === 'asked')
    return <span data-action={key}>{isAway ? 'Stop queued, its runner is away' : 'Stopping…'}</span>;

  const ask = () => {
    const run = task.runId === null ? {} : { runId: task.runId };
    actions.ask(key, `/tasks/${encodeURIComponent(task.id)}/stop`, run);
  };
  return (
    <span data-action={key} aria-live="polite" className="flex min-w-0 flex-wrap items-baseline gap-x-2">
      {state?.kind === 'failed' && (
        <span className="text-failed">
          Not stopped: <Name text={state.reason} />
        </span>
      )}
      <PressTwice
        of={key}
        onPress={ask}
        label={(isPressed) => `${isPressed ? 'Press again to stop' : 'Stop'} ${quoted(task.description)}`}
        looks={['hover:text-ink', 'font-medium text-failed aria-disabled:text-ink-2']}
      >
        {(isPressed) =>
          isPressed ? 'Press again to stop it' : state?.kind === 'failed' ? 'Try again' : isAway ? 'Queue stop' : 'Stop'
        }
      </PressTwice>
    </span>
  );
}

export const wakeKey = (task: Pick<Task, 'position'>) => `wake:${task.position}`;

/** Begins a turn with the result of a command that has ended, where no turn has been told of it. */
export function TaskWake({ task }: { task: Task }) {
  const actions = useActions();
  const { stopped, isAway } = useLiveness();
  const isTaken = useIsTaken('task.wake');
  const key = wakeKey(task);
  const state = useActionState(key);
  const hasEnded = task.status !== 'running' && task.presumed === undefined;
  const isUntold = task.answeredInTurnId === null && task.toldElsewhere === null && task.carriedBy === undefined;
  // A subagent tells its result by itself.
  if (actions === null || !isTaken || stopped !== null || !hasEnded || !isUntold || task.kind === 'subagent')
    return null;
  if (state?.kind === 'sending' || state?.kind === 'asked')
    return <span data-action={key}>{isAway ? 'Wake queued, its runner is away' : 'Waking the agent…'}</span>;

  const ask = () => {
    const run = task.runId === null ? {} : { runId: task.runId };
    actions.ask(key, `/tasks/${encodeURIComponent(task.id)}/wake`, run);
  };
  return (
    <span data-action={key} aria-live="polite" className="flex min-w-0 flex-wrap items-baseline gap-x-2">
      {state?.kind === 'failed' && (
        <span className="text-failed">
          Not woken: <Name text={state.reason} />
        </span>
      )}
      <SettledButton
        of={key}
        onPress={ask}
        label={`Wake the agent for ${quoted(task.description)}`}
        className="text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink aria-disabled:text-ink-3"
      >
        {state?.kind === 'failed' ? 'Try again' : isAway ? 'Queue a wake' : 'Wake the agent'}
      </SettledButton>
    </span>
  );
}
