import { contentText, editLength } from '../event-fields';
import { readInterlude } from '../interlude-metadata';
import { measureJson, parseWellFormed } from '../json';
import { MAX_ARGS_VALUES, MAX_ITEM_TEXT, MAX_PENDING_REQUESTS, MAX_TURN_ITEMS, MAX_TURN_TEXT } from '../limits';
import type { Item, ItemKind } from '../read-models';
import { truncateText } from '../text';
import type { EventEntry } from './placement';

/** How much of a turn's text the requests before its newest items may take up. */
const MOST_HELD_TEXT = MAX_TURN_TEXT / 2;

/** Items of a turn in order: older requests, then the newest items; and how many others are not shown. */
export interface ShownItems {
  items: Item[];
  /** Left out if it is 0. */
  omitted?: number;
}

/**
 * Items while events are folded into them: indexed by kind and id, so that an event costs as much in a turn of ten
 * thousand items as in one of ten, and bounded as they grow. The oldest go first, because people follow the end of a
 * turn. But what the agent may wait for stays, or nobody could answer it.
 *
 * The bound holds after every event, not after every batch. So what is shown depends on the events alone, and a turn
 * followed live ends up like the same turn loaded later.
 */
export class ItemDraft {
  readonly #items: Item[];
  readonly #index = new Map<string, number>();
  /** Where the newest items begin; of those before, only the held ones are shown. */
  #first = 0;
  /** Indexes of the items before `#first` that stay. */
  #held: number[] = [];
  #text = 0;
  #omitted: number;

  constructor({ items, omitted = 0 }: ShownItems) {
    this.#items = [...items];
    this.#omitted = omitted;
    for (const [at, item] of items.entries()) {
      this.#index.set(keyOf(item), at);
      this.#text += textOf(item);
    }
    this.#trim();
  }

  /** Whether an unknown item may be one that is no longer shown. */
  get isCut(): boolean {
    return this.#omitted > 0;
  }

  find<K extends Exclude<ItemKind, 'task'>>(kind: K, id: string | null): Extract<Item, { kind: K }> | undefined {
    const at = id === null ? undefined : this.#index.get(`${kind} ${id}`);
    return at === undefined ? undefined : (this.#items[at] as Extract<Item, { kind: K }>);
  }

  /** Replaces the item of the same kind and id, or appends. */
  put(item: Item): void {
    const key = keyOf(item);
    const at = this.#index.get(key);
    this.#text += textOf(item);
    if (at === undefined) this.#index.set(key, this.#items.push(item) - 1);
    else {
      this.#text -= textOf(this.#items[at] as Item);
      this.#items[at] = item;
    }
    this.#trim();
  }

  /** Puts `item` in the place of `known`, even under another id. */
  replace(known: Item, item: Item): void {
    const key = keyOf(known);
    const at = this.#index.get(key);
    if (at === undefined) return;
    this.#index.delete(key);
    this.#index.set(keyOf(item), at);
    this.#text += textOf(item) - textOf(known);
    this.#items[at] = item;
    this.#trim();
  }

  shown(): ShownItems {
    const held = this.#held.map((at) => this.#items[at] as Item);
    const items = this.#first === 0 ? this.#items : [...held, ...this.#items.slice(this.#first)];
    return this.#omitted === 0 ? { items } : { items, omitted: this.#omitted };
  }

  #trim(): void {
    while (this.#count > 1 && (this.#count > MAX_TURN_ITEMS || this.#text > MAX_TURN_TEXT)) {
      const oldest = this.#items[this.#takeOldest()] as Item;
      this.#index.delete(keyOf(oldest));
      this.#text -= textOf(oldest);
      this.#omitted += 1;
    }
  }

  get #count(): number {
    return this.#held.length + this.#items.length - this.#first;
  }

  /**
   * Drops the oldest item that need not stay. Requests stay, answered or not, until there are too many of them: some
   * readers learn later than others that one is answered, and what is shown must not depend on that.
   *
   * @returns its index
   */
  #takeOldest(): number {
    let text = 0;
    for (const at of this.#held) text += textOf(this.#items[at] as Item);
    while (text <= MOST_HELD_TEXT && this.#held.length <= MAX_PENDING_REQUESTS) {
      const at = this.#first;
      const item = this.#items[at] as Item;
      // The newest stays, whatever it is.
      if (at === this.#items.length - 1) break;
      this.#first += 1;
      if (item.kind !== 'request') return at;
      this.#held.push(at);
      text += textOf(item);
    }
    return this.#held.shift() as number;
  }
}

/** A task has an item for each moment of its life that is shown; everything else has one. */
function keyOf(item: Item): string {
  return `${item.kind} ${item.kind === 'task' ? item.position : item.id}`;
}

/** How much text some items have: what they add to the size of a page, roughly. */
export function textOfItems(items: readonly Item[]): number {
  return items.reduce((sum, item) => sum + textOf(item), 0);
}

const INPUT_LENGTHS = new WeakMap<object, number>();

/** How much text it has, in UTF-16 units. */
function textOf(item: Item): number {
  switch (item.kind) {
    case 'message':
      return (
        item.replyTo.reduce((sum, id) => sum + id.length, item.text.length) +
        lengthOfEach(item.attachments, ({ name, mediaType }) => name.length + mediaType.length)
      );
    case 'reasoning':
    case 'notice':
      return item.text.length;
    case 'tool-call':
      return item.argsText.length + (item.result?.length ?? 0) + lengthOfEach(item.edits, editLength);
    case 'request':
      return item.title.length + lengthOf(item.input) + lengthOfEach(item.options, ({ label }) => label.length);
    case 'plan':
      return lengthOfEach(item.entries, ({ content }) => content.length);
    default:
      return 0;
  }
}

function lengthOfEach<T>(parts: readonly T[] = [], lengthOf: (part: T) => number): number {
  return parts.reduce((sum, part) => sum + lengthOf(part), 0);
}

function lengthOf(input: unknown): number {
  if (typeof input !== 'object' || input === null) return String(input ?? '').length;
  const known = INPUT_LENGTHS.get(input);
  if (known !== undefined) return known;
  const length = JSON.stringify(input).length;
  INPUT_LENGTHS.set(input, length);
  return length;
}

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

/**
 * The arguments of a call; null while they are not JSON yet, and if they are nested deeper than a record may be or hold
 * very many values. They came as text, so the limits of a record did not apply: code that walks through them later, here
 * or in a browser, would overflow its stack or take too long. Such arguments are shown as they were written.
 *
 * Arguments stream as pieces of JSON, so parsing is worth it only if the last piece may be the end.
 */
export function parsedArgs(argsText: string): unknown {
  if (!/[}\]"\del]/.test(lastLetter(argsText)) || !isBounded(argsText)) return null;
  try {
    // the text is well-formed, but an escape in it may still stand for half a pair
    return parseWellFormed(argsText);
  } catch {
    return null;
  }
}

function lastLetter(text: string): string {
  let at = text.length - 1;
  while (at >= 0 && JSON_BLANKS.includes(text.charAt(at))) at -= 1;
  return text.charAt(at);
}

const JSON_BLANKS = ' \t\r\n';

function isBounded(json: string): boolean {
  const { values, tooDeepAt } = measureJson(new TextEncoder().encode(json));
  return tooDeepAt === null && values <= MAX_ARGS_VALUES;
}
