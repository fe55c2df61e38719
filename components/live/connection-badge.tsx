'use client';

import { clsx } from 'clsx';
import { TimeOfDay, useFrozenAt, useUnfrozenNow } from '@/components/ui/clock';
import { formatAgoLong } from '@/components/ui/duration';
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
  connecting: 'Connecting to live updates',
  live: 'This page is up to date',
  reconnecting: 'Offline. The page will update when the server is back',
  gap: 'Reconnected. This page is up to date',
  'signed-out': 'Signed out. Sign in again',
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
  reconnecting: 'border border-current',
  gap: 'bg-current rounded-none! rotate-45',
  'signed-out': 'bg-current rounded-none!',
};

export function ConnectionBadge() {
  const { status } = useConnectionState();
  const asOf = useFrozenAt();
  return (
    <span
      role="status"
      aria-label="Connection"
      title={MEANING[status]}
      // Reserves its later width from the first paint on; on a phone, the usual states are a dot.
      className={clsx('flex shrink-0 flex-col items-end text-2xs sm:min-w-[70px]', COLOUR[status])}
    >
      <span className="flex items-center gap-1.5">
        <span aria-hidden="true" className={clsx('size-1.5 rounded-full', DOT[status])} />
        <span className={clsx(COLOUR[status] === 'text-ink-3' && 'max-sm:sr-only')}>{WORD[status]}</span>
      </span>
      {asOf !== null && <Age asOf={asOf} />}
    </span>
  );
}

/** `as of 12:03:20, 40 s ago`: announced once, not every second. */
function Age({ asOf }: { asOf: number }) {
  const age = useUnfrozenNow((now) => formatAgoLong(now - asOf));
  return (
    <span className="tabular">
      as of{' '}
      <span className="max-sm:sr-only">
        <TimeOfDay at={asOf} seconds />,{' '}
      </span>
      <span aria-live="off">{age}</span>
    </span>
  );
}
