import type { Turn } from '@interlude/protocol/read-models';
import type { OutgoingMessage } from './draft-store';

const MOST = 100;

/** What was written to the agent before, the newest first, each text once: what ↑ brings back. */
export function sentTexts(turns: readonly Turn[], outgoing: readonly OutgoingMessage[]): string[] {
  const texts = new Set<string>();
  for (const { text } of outgoing.toReversed()) texts.add(text);
  for (let at = turns.length - 1; at >= 0 && texts.size < MOST; at--) {
    for (const item of turns[at]?.items.toReversed() ?? []) {
      if (item.kind === 'message' && item.role === 'user') texts.add(item.text);
    }
  }
  return [...texts];
}
