'use client';

import { clsx } from 'clsx';
import type { ConnectionStatus } from './connection-state';
import { useConnectionState } from './live-provider';

const WORD: Record<ConnectionStatus, string> = {
  connecting: 'Connecting',
  live: 'Live',
  reconnecting: 'Reconnecting',
  gap: 'Gap',
  'signed-out': 'Signed out',
};

const MEANING: Record<ConnectionStatus, string> = {
  connecting: 'Opening the live connection',
  live: 'Everything the server has is on this page',
  reconnecting: 'The server can’t be reached. What you see may be old; it resumes where it stopped, without loss',
  gap: 'Some events were too old to be sent again. The page was loaded anew and is current',
  'signed-out': 'Your sign-in has ended. Open the sign-in link again',
};

const COLOUR: Record<ConnectionStatus, string> = {
  connecting: 'text-ink-3',
  live: 'text-ink-3',
  reconnecting: 'text-waiting',
  gap: 'text-waiting',
  'signed-out': 'text-failed',
};

const DOT: Record<ConnectionStatus, string> = {
  connecting: 'border border-current animate-breathe',
  live: 'bg-working',
  reconnecting: 'border border-current animate-breathe',
  gap: 'bg-current rounded-none! rotate-45',
  'signed-out': 'bg-current rounded-none!',
};

/** Whether what is on the page is what the server knows. */
export function ConnectionBadge() {
  const { status } = useConnectionState();
  return (
    <span
      role="status"
      aria-label="Connection"
      title={MEANING[status]}
      className={clsx('flex shrink-0 items-center gap-1.5 text-2xs', COLOUR[status])}
    >
      <span aria-hidden="true" className={clsx('size-1.5 rounded-full', DOT[status])} />
      {WORD[status]}
    </span>
  );
}
