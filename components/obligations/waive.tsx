'use client';

import { clsx } from 'clsx';
import { useRef } from 'react';
import { afterPress } from '@/components/ui/after-press';
import { Name } from '@/components/ui/name';
import { useSettled } from '@/components/ui/use-settled';
import { useWaive } from './use-waive';

/** “No reply needed”, confirmed where it stands. */
export function Waive({ sessionId, messageId }: { sessionId: string; messageId: string }) {
  const { state, press, letGo } = useWaive(sessionId, messageId);
  const isOnItsWay = state.kind === 'sending' || state.kind === 'sent';
  const isPressed = state.kind === 'pressed';
  const button = useRef<HTMLButtonElement>(null);
  const { settled, isMeant } = useSettled(button, `${messageId}:${isPressed}`);
  return (
    <span aria-live="polite" className="flex min-w-0 flex-wrap items-baseline gap-x-2 text-2xs">
      {state.kind === 'failed' && (
        <span className="text-failed">
          Not dropped: <Name text={state.reason} />
        </span>
      )}
      <button
        ref={button}
        type="button"
        aria-disabled={!settled}
        onClick={() => isMeant() && press()}
        onBlur={() => afterPress(letGo)}
        disabled={isOnItsWay}
        className={clsx(
          'whitespace-nowrap underline transition-colors duration-300 disabled:cursor-default aria-disabled:cursor-default disabled:no-underline',
          isPressed ? 'font-medium text-ink aria-disabled:text-ink-3' : 'text-ink-3 hover:text-ink',
        )}
      >
        {isOnItsWay ? 'Dropping it…' : isPressed ? 'Press again: no reply needed' : 'No reply needed'}
      </button>
    </span>
  );
}
