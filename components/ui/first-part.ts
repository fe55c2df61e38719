import { truncateText } from '@interlude/protocol/text';

/**
 * Where the beginning of a text ends that is at most so long: behind a line where one ends nearby, and never between
 * the two halves of a character.
 */
export function endOfFirstPart(text: string, most: number): number {
  if (text.length <= most) return text.length;
  const lineEnd = text.lastIndexOf('\n', most - 1) + 1;
  if (lineEnd > most / 2) return lineEnd;
  return truncateText(text, most).length;
}
