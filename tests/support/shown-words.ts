import type { TranscriptPage } from '@interlude/protocol/read-models';
import type { Page } from 'playwright-core';
import { transcriptOf } from './transcript-page';

/** The words of the transcript, one space apart: markdown and line breaks do not count. */
export async function wordsOf(page: Page): Promise<string> {
  const texts = await transcriptOf(page).allInnerTexts();
  return wordsIn(texts.join('\n')).join(' ');
}

export function wordsIn(text: string): string[] {
  return text.match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** The texts of the assistant's messages, in order. */
export function textsOf({ turns }: TranscriptPage): string[] {
  return turns.flatMap(({ items }) =>
    items.flatMap((item) => (item.kind === 'message' && item.role === 'assistant' ? [item.text] : [])),
  );
}
