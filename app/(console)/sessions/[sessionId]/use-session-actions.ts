'use client';

import { useCallback, useEffect, useState, useSyncExternalStore } from 'react';
import type { OutgoingMessage } from '@/components/composer/outgoing-queue';
import { ActionStore } from '@/components/live/actions';
import type { NoticeItem, Turn } from '@/lib/protocol/read-models';

/** What was asked of the agent on this page, told how it went; and what failed out of sight. */
export function useSessionActions(
  sessionId: string,
  turns: readonly Turn[] | undefined,
  outgoing: readonly OutgoingMessage[],
) {
  const [toast, setToast] = useState<string | null>(null);
  const [store] = useState(
    () =>
      new ActionStore(sessionId, (key, reason) => {
        if (!isInSight(`[data-action="${CSS.escape(key)}"]`)) {
          setToast(`What you asked of the agent failed: ${reason}`);
        }
      }),
  );

  const version = useSyncExternalStore(
    store.subscribe,
    () => store.version,
    () => 0,
  );

  // Only the transcript tells what became of a command that was taken, and it may do so before the answer is here.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version says that the store has changed
  useEffect(() => {
    for (const { key, commandId } of store.asked()) {
      const notice = turns === undefined ? null : commandNotice(turns, commandId);
      if (notice?.command?.state === 'failed') store.fail(key, notice.text);
      else if (notice?.command?.state === 'done' && key.startsWith('stop:')) store.clear(key);
    }
  }, [store, turns, version]);

  const refused = outgoing.findLast(({ state }) => state === 'refused');
  useEffect(() => {
    if (refused === undefined || isInSight(`#${CSS.escape(`message-${refused.clientId}`)}`)) return;
    setToast(`A message was not sent: ${refused.reason ?? 'the server refused it'}`);
  }, [refused]);

  return { store, toast, closeToast: useCallback(() => setToast(null), []) };
}

/** Its notice is near the end: commands are answered within minutes. */
const TURNS_SEARCHED = 50;

function commandNotice(turns: readonly Turn[], commandId: string): NoticeItem | null {
  for (const turn of turns.slice(-TURNS_SEARCHED).reverse()) {
    const found = turn.items.find((item) => item.kind === 'notice' && item.command?.id === commandId);
    if (found?.kind === 'notice') return found;
  }
  return null;
}

function isInSight(selector: string): boolean {
  return [...document.querySelectorAll(selector)].some((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    const frame = element.closest('[role="log"]')?.getBoundingClientRect() ?? { top: 0, bottom: innerHeight };
    return bottom > frame.top && top < frame.bottom;
  });
}
