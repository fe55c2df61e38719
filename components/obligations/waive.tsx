'use client';

import type { WaiveAnswer } from '@interlude/protocol/commands';
import { useMayAct } from '@/components/access/may-act';
import { usePost } from '@/components/live/idempotent-post';
import { Name } from '@/components/ui/name';
import { PressTwice } from '@/components/ui/press-twice';

/** “No reply needed”, confirmed where it stands. The live row takes what is not owed any more off its list. */
export function Waive({ sessionId, messageId }: { sessionId: string; messageId: string }) {
  const [state, ask] = usePost<WaiveAnswer>();
  const mayAct = useMayAct();
  const isOnItsWay = state.kind === 'sending' || state.kind === 'answered';
  const path = `/sessions/${encodeURIComponent(sessionId)}/obligations/${encodeURIComponent(messageId)}/waive`;
  if (!mayAct) return null;
  return (
    <span aria-live="polite" className="flex min-w-0 flex-wrap items-baseline gap-x-2 text-2xs">
      {state.kind === 'failed' && (
        <span className="text-failed">
          Not dropped: <Name text={state.reason} />
        </span>
      )}
      <PressTwice
        of={messageId}
        disabled={isOnItsWay}
        onPress={() => ask(path)}
        className="whitespace-nowrap disabled:cursor-default disabled:no-underline"
        looks={['text-ink-3 hover:text-ink', 'font-medium text-ink aria-disabled:text-ink-3']}
      >
        {(isPressed) => (isOnItsWay ? 'Dropping it…' : isPressed ? 'Press again: no reply needed' : 'No reply needed')}
      </PressTwice>
    </span>
  );
}
