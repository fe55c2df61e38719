'use client';

import type { MessageItem } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { useFrozenAt } from '@/components/ui/clock';
import { ConfirmButton } from '@/components/ui/confirm-button';
import { Glyph } from '@/components/ui/glyph';
import { SettledButton } from '@/components/ui/misclick-guard';
import { Phrase } from '@/components/ui/name';
import type { OutgoingMessage } from './draft-store';

interface DeliveryLineProps {
  item: Pick<MessageItem, 'id' | 'delivery' | 'deliveryReason'>;
  /** The message in this browser's queue; null once the server has it. */
  outgoing: OutgoingMessage | null;
  /** True if the agent is offline. */
  away: boolean;
  /** Null if the message can't be sent again. */
  sendAgain: (() => void) | null;
  /** Moves the message back into the composer. */
  edit: (() => void) | null;
  discard: (() => void) | null;
}

/** Delivery state of a message. Screen readers announce failures only. */
export function DeliveryLine({ item, outgoing: own, away, sendAgain, edit, discard }: DeliveryLineProps) {
  const isStale = useFrozenAt() !== null;
  // While the server is unreachable, the attempt will fail and be retried.
  const outgoing: OutgoingMessage | null = isStale && own?.state === 'sending' ? { ...own, state: 'retrying' } : own;
  const failure = failureOf(item, outgoing);
  const actions = [['Try again', sendAgain] as const, ['Edit', edit] as const].flatMap(([label, act]) =>
    act === null ? [] : [[label, act] as const],
  );
  return (
    <div className="mt-1 text-2xs">
      {failure === null && (
        <p aria-live="off" className={clsx('tabular', isStuck(item, outgoing, away) ? 'text-waiting' : 'text-ink-3')}>
          {wordsOf(item, outgoing, away)}
        </p>
      )}
      <div aria-live="polite">
        {failure !== null && (
          <p className="flex flex-wrap items-baseline gap-x-3 text-failed">
            <span className="flex min-w-0 items-baseline gap-1.5">
              <Glyph name="failed" className="relative top-[1.5px] scale-90" />
              <span className="[overflow-wrap:anywhere]">
                <Phrase text={failure} />
              </span>
            </span>
            {actions.map(([label, act]) => (
              <SettledButton
                key={label}
                of={item.id}
                onPress={act}
                className="text-ink-2 underline hover:text-ink aria-disabled:text-ink-3"
              >
                {label}
              </SettledButton>
            ))}
            {discard !== null && (
              <ConfirmButton
                of={item.id}
                onPress={discard}
                looks={['text-ink-2 hover:text-ink aria-disabled:text-ink-3', 'font-medium aria-disabled:text-ink-3']}
              >
                {(isPressed) => (isPressed ? 'Press again to discard' : 'Discard')}
              </ConfirmButton>
            )}
          </p>
        )}
      </div>
    </div>
  );
}

function failureOf(item: DeliveryLineProps['item'], outgoing: OutgoingMessage | null): string | null {
  if (outgoing?.state === 'refused') return `Not sent: ${outgoing.reason ?? 'the server refused it'}`;
  if (outgoing !== null || item.delivery !== 'failed') return null;
  return `Not delivered${item.deliveryReason === null ? '' : `: ${item.deliveryReason}`}`;
}

function wordsOf(item: DeliveryLineProps['item'], outgoing: OutgoingMessage | null, away: boolean): string {
  if (outgoing?.state === 'sending') return 'Sending…';
  if (outgoing?.state === 'retrying') return 'Not sent yet. Retrying…';
  if (outgoing?.state === 'signed-out') return 'Not sent. Sign in again to send it.';
  switch (item.delivery) {
    case 'delivered':
      return 'Delivered';
    case 'seen':
      return 'Seen';
    default:
      return away ? 'Queued until the agent reconnects' : 'Queued';
  }
}

function isStuck(item: DeliveryLineProps['item'], outgoing: OutgoingMessage | null, away: boolean): boolean {
  const waits = outgoing?.state === 'retrying' || outgoing?.state === 'signed-out';
  return waits || (outgoing === null && item.delivery === 'queued' && away);
}
