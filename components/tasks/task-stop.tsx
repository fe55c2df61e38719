'use client';

import { useEffect, useState } from 'react';
import { useActionState, useActions } from '@/components/live/actions';
import { useLiveness } from '@/components/ui/liveness';
import type { Task } from '@/lib/protocol/read-models';

/** How long a first press waits for the second. */
const CONFIRM_MS = 4_000;

export const stopKey = (task: Pick<Task, 'position'>) => `stop:${task.position}`;

/** Stops a running task: pressed twice, because what it has done so far may be lost. */
export function TaskStop({ task }: { task: Task }) {
  const actions = useActions();
  const { stopped, isAway } = useLiveness();
  const key = stopKey(task);
  const state = useActionState(key);
  const [pressed, setPressed] = useState(false);
  useEffect(() => {
    if (!pressed) return;
    const timer = setTimeout(() => setPressed(false), CONFIRM_MS);
    return () => clearTimeout(timer);
  }, [pressed]);
  // One that nobody runs any more may not be there when its runner is: what waited would stop something else.
  if (actions === null || task.status !== 'running' || stopped !== null) return null;
  if (state?.kind === 'sending' || state?.kind === 'asked')
    return <span data-action={key}>{isAway ? 'Stop queued, its runner is away' : 'Stopping…'}</span>;

  const ask = () => {
    if (!pressed) return setPressed(true);
    setPressed(false);
    const run = task.runId === null ? {} : { runId: task.runId };
    actions.ask(key, `/tasks/${encodeURIComponent(task.id)}/stop`, run);
  };
  return (
    <span data-action={key} aria-live="polite" className="flex min-w-0 flex-wrap items-baseline gap-x-2">
      {state?.kind === 'failed' && <span className="text-failed">Not stopped: {state.reason}</span>}
      <button
        type="button"
        onClick={ask}
        onBlur={() => setPressed(false)}
        aria-label={pressed ? `Press again to stop ${task.description}` : `Stop ${task.description}`}
        className={pressed ? 'font-medium text-failed underline' : 'underline hover:text-ink'}
      >
        {pressed ? 'Press again to stop it' : state?.kind === 'failed' ? 'Try again' : isAway ? 'Queue stop' : 'Stop'}
      </button>
    </span>
  );
}
