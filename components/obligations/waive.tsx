'use client';

import { clsx } from 'clsx';
import { useWaive } from './use-waive';

/** “No reply needed”, confirmed where it stands. */
export function Waive({ sessionId, messageId }: { sessionId: string; messageId: string }) {
  const { state, press, letGo } = useWaive(sessionId, messageId);
  const isOnItsWay = state.kind === 'sending' || state.kind === 'sent';
  const isPressed = state.kind === 'pressed';
  return (
    <span aria-live="polite" className="flex min-w-0 flex-wrap items-baseline gap-x-2 text-2xs">
      {state.kind === 'failed' && <span className="text-failed">Not dropped: {state.reason}</span>}
      <button
        type="button"
        onClick={press}
        onBlur={letGo}
        disabled={isOnItsWay}
        className={clsx(
          'whitespace-nowrap underline disabled:cursor-default disabled:no-underline',
          isPressed ? 'font-medium text-ink' : 'text-ink-3 hover:text-ink',
        )}
      >
        {isOnItsWay ? 'Dropping it…' : isPressed ? 'Press again: no reply needed' : 'No reply needed'}
      </button>
    </span>
  );
}
