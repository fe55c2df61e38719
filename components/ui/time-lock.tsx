'use client';

import { clsx } from 'clsx';
import { Logs } from 'lucide';
import { createContext, useContext } from 'react';
import { Icon } from './icon';
import { nameText } from './verbatim';

/** Locks the log beside the page to the time span of an item on the page. */
export interface TimeLock {
  /** Anchor of the item that the log is locked to. */
  lockedAnchor: string | null;
  /** Locks the log to an item, or unlocks it. */
  toggle: (anchor: string) => void;
}

const TimeLockContext = createContext<TimeLock | null>(null);

export const TimeLockProvider = TimeLockContext.Provider;

export function useIsLocked(anchor: string): boolean {
  return useContext(TimeLockContext)?.lockedAnchor === anchor;
}

/** A button that shows the log lines written while an item ran. Renders nothing without a log beside the page. */
export function ShowInLog(props: { anchor: string; name: string; className?: string }) {
  const { anchor, name, className } = props;
  const lock = useContext(TimeLockContext);
  if (lock === null) return null;
  const isLocked = lock.lockedAnchor === anchor;
  return (
    <button
      type="button"
      aria-label={`Show in log: ${nameText(name)}`}
      aria-pressed={isLocked}
      title={isLocked ? 'Stop showing in log' : 'Show in log'}
      onClick={() => lock.toggle(anchor)}
      className={clsx('hit inline-flex rounded-sm hover:text-ink', isLocked ? 'text-ink' : 'text-ink-3', className)}
    >
      <Icon of={Logs} size={13} strokeWidth={isLocked ? 2.25 : 1.75} />
    </button>
  );
}
