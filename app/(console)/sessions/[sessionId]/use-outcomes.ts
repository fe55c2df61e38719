'use client';

import type { NoticeItem, Turn } from '@interlude/protocol/read-models';
import { useEffect, useSyncExternalStore } from 'react';
import type { OutgoingMessage } from '@/components/composer/draft-store';
import type { ActionStore } from '@/components/live/actions';
import { isInSight } from './is-in-sight';

/** Tells what became of what was asked on this page, and says what failed out of sight. */
export function useOutcomes(options: {
  actions: ActionStore;
  turns: readonly Turn[] | undefined;
  outgoing: readonly OutgoingMessage[];
  say: (text: string) => void;
}): void {
  const { actions, turns, outgoing, say } = options;
  const version = useSyncExternalStore(
    actions.subscribe,
    () => actions.version,
    () => 0,
  );

  // Only the transcript tells what became of a command that was taken, and it may do so before the answer is here.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version says that the store has changed
  useEffect(() => {
    for (const { key, commandId } of actions.asked()) {
      const notice = turns === undefined ? null : commandNotice(turns, commandId);
      if (notice?.command?.state === 'failed') actions.fail(key, notice.text);
      else if (notice?.command?.state === 'done' && /^(stop|wake):/.test(key)) actions.clear(key);
    }
  }, [actions, turns, version]);

  const refused = outgoing.findLast(({ state }) => state === 'refused');
  useEffect(() => {
    if (refused === undefined || isInSight(`#${CSS.escape(`message-${refused.clientId}`)}`)) return;
    say(`A message was not sent: ${refused.reason ?? 'the server refused it'}`);
  }, [refused, say]);
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
