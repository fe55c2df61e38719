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
      // As wide from the first paint on as it is a moment later, and no wider than a phone has room for.
      className={clsx(
        'flex min-w-8 shrink-0 items-center justify-end gap-1.5 text-2xs sm:min-w-[70px]',
        COLOUR[status],
      )}
    >
      <span aria-hidden="true" className={clsx('size-1.5 rounded-full', DOT[status])} />
      <span className={clsx(status === 'connecting' && 'max-sm:sr-only')}>{WORD[status]}</span>
    </span>
  );
}
