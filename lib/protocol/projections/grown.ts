import { contentText } from '../event-fields';
import { readInterlude } from '../interlude-metadata';
import { MAX_ITEM_TEXT } from '../limits';
import { truncateText } from '../text';
import type { EventEntry } from './event-entry';

/** The item with this event's text: appended, or in place of what it had if the event has the whole text. */
export function grown<Name extends string, T extends { [name in Name]: string } & { cut?: number }>(
  item: T,
  name: Name,
  { event }: EventEntry,
): T {
  const delta = contentText(event.delta);
  const isWhole = readInterlude(event).whole === true;
  // Once the text has been cut, nothing more is shown of it.
  const before = isWhole ? 0 : (item.cut ?? 0);
  const text = isWhole ? delta : before > 0 ? item[name] : item[name] + delta;
  const shown = truncateText(text, MAX_ITEM_TEXT);
  const cut = before > 0 ? before + delta.length : text.length - shown.length;
  return withCut({ ...item, [name]: shown }, cut);
}

/** @param cut how much of the item's text is not shown */
export function withCut<T extends { cut?: number }>({ cut: _before, ...item }: T, cut: number): T {
  return (cut === 0 ? item : { ...item, cut }) as T;
}
