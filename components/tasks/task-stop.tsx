'use client';

import { clsx } from 'clsx';
import { useEffect, useRef, useState } from 'react';
import { useActionState, useActions } from '@/components/live/actions';
import { useRefusal } from '@/components/live/refusals';
import { afterPress } from '@/components/ui/after-press';
import { useLiveness } from '@/components/ui/liveness';
import { Name } from '@/components/ui/name';
import { useSettled } from '@/components/ui/use-settled';
import { nameText } from '@/components/ui/verbatim';
import type { Task } from '@/lib/protocol/read-models';

/** How long a first press waits for the second. */
const CONFIRM_MS = 4_000;

export const stopKey = (task: Pick<Task, 'position'>) => `stop:${task.position}`;

/** Stops a running task: pressed twice, because what it has done so far may be lost. */
export function TaskStop({ task }: { task: Task }) {
  const actions = useActions();
  const { stopped, isAway } = useLiveness();
  const refusal = useRefusal('task.stop');
  const key = stopKey(task);
  const state = useActionState(key);
  const [pressed, setPressed] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  // What a first press asks is another question than what the second one answers.
  const isOnItsWay = state?.kind === 'sending' || state?.kind === 'asked';
  // One that nobody runs any more may not be there when its runner is: what waited would stop something else.
  const isRunning = actions !== null && task.status === 'running' && stopped === null;
  const isOffered = isRunning && refusal === null;
  const { settled, isMeant } = useSettled(button, isOffered && !isOnItsWay ? `${key}:${pressed}` : null);
  useEffect(() => {
    if (!pressed) return;
    const timer = setTimeout(() => setPressed(false), CONFIRM_MS);
    return () => clearTimeout(timer);
  }, [pressed]);
  if (isRunning && refusal !== null) {
    return (
      <span title={nameText(refusal.reason)}>
        Can’t be stopped here<span className="sr-only">: {nameText(refusal.reason)}</span>
      </span>
    );
  }
  if (!isOffered) return null;
  if (isOnItsWay) return <span data-action={key}>{isAway ? 'Stop queued, its runner is away' : 'Stopping…'}</span>;

  const ask = () => {
    if (!isMeant()) return;
    if (!pressed) return setPressed(true);
    setPressed(false);
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
      <button
        ref={button}
        type="button"
        aria-disabled={!settled}
        onClick={ask}
        onBlur={() => afterPress(() => setPressed(false))}
        aria-label={
          pressed ? `Press again to stop ${nameText(task.description)}` : `Stop ${nameText(task.description)}`
        }
        className={clsx(
          'underline transition-colors duration-300 aria-disabled:cursor-default',
          pressed ? 'font-medium text-failed aria-disabled:text-ink-2' : 'hover:text-ink',
        )}
      >
        {pressed ? 'Press again to stop it' : state?.kind === 'failed' ? 'Try again' : isAway ? 'Queue stop' : 'Stop'}
      </button>
    </span>
  );
}
