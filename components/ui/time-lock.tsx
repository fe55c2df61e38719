'use client';

import { clsx } from 'clsx';
import { Logs } from 'lucide';
import { createContext, useContext } from 'react';
import { Icon } from './icon';
import { nameText } from './verbatim';

/** A log beside the page that can be brought to the span of time of something on it, named by its anchor. */
export interface TimeLock {
  /** What it is brought to, else null. */
  held: string | null;
  /** Brings it there, or lets go of what it was brought to. */
  toggle: (anchor: string) => void;
}

const TimeLockContext = createContext<TimeLock | null>(null);

export const TimeLockProvider = TimeLockContext.Provider;

export function useIsHeld(anchor: string): boolean {
  return useContext(TimeLockContext)?.held === anchor;
}

/** Shows in the log what was logged while this ran. Where there is no log beside the page, there is no button. */
export function ShowInLog(props: { anchor: string; name: string; className?: string }) {
  const { anchor, name, className } = props;
  const lock = useContext(TimeLockContext);
  if (lock === null) return null;
  const held = lock.held === anchor;
  return (
    <button
      type="button"
      aria-label={`Show in log: ${nameText(name)}`}
      aria-pressed={held}
      title={held ? 'Shown in the log. Again: let go' : 'Show in log'}
      onClick={() => lock.toggle(anchor)}
      className={clsx('hit inline-flex rounded-sm hover:text-ink', held ? 'text-ink' : 'text-ink-3', className)}
    >
      <Icon of={Logs} size={13} strokeWidth={held ? 2.25 : 1.75} />
    </button>
  );
}
