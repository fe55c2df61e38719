import { contentText, editLength } from '../event-fields';
import { readInterlude } from '../interlude-metadata';
import { measureJson, parseWellFormed } from '../json';
import { MAX_ARGS_VALUES, MAX_ITEM_TEXT, MAX_PENDING_REQUESTS, MAX_TURN_ITEMS, MAX_TURN_TEXT } from '../limits';
import type { Item, ItemKind } from '../read-models';
import { truncateText } from '../text';
import type { EventEntry } from './placement';

/** Maximum text, in UTF-16 code units, of the requests shown before the newest items. */
const MAX_REQUEST_TEXT = MAX_TURN_TEXT / 2;

/** Items of a turn in order (older requests, then the newest items) and the number of omitted ones. */
export interface ShownItems {
  items: Item[];
  /** Absent if 0. */
  omitted?: number;
}

/**
 * Items of a turn while events are folded in, indexed by kind and id, so an event takes constant time. The size is
 * bounded: the oldest items are omitted first, except requests, which a person must still be able to answer.
 *
 * Ordering: the bound applies after each event rather than each batch, so the result depends on the events alone and a
 * live turn equals a reloaded one.
 */
export class ItemDraft {
  readonly #items: Item[];
  readonly #index = new Map<string, number>();
  /** Index of the first newest item. Of the earlier items, only `#olderRequests` are shown. */
  #first = 0;
  /** Indexes of the shown requests before `#first`, ascending. */
  #olderRequests: number[] = [];
  #text = 0;
  #omitted: number;

  constructor({ items, omitted = 0 }: ShownItems) {
    this.#items = [...items];
    this.#omitted = omitted;
    for (const [index, item] of items.entries()) {
      this.#index.set(keyOf(item), index);
      this.#text += itemTextLength(item);
    }
    this.#trim();
  }

  /** True if an unknown item may be an omitted one. */
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
    this.#text += itemTextLength(item);
    if (at === undefined) this.#index.set(key, this.#items.push(item) - 1);
    else {
      this.#text -= itemTextLength(this.#items[at] as Item);
      this.#items[at] = item;
    }
    this.#trim();
  }

  /** Replaces `known` by `item`, which may have another id. */
  replace(known: Item, item: Item): void {
    const key = keyOf(known);
    const at = this.#index.get(key);
    if (at === undefined) return;
    this.#index.delete(key);
    this.#index.set(keyOf(item), at);
    this.#text += itemTextLength(item) - itemTextLength(known);
    this.#items[at] = item;
    this.#trim();
  }

  shown(): ShownItems {
    const olderRequests = this.#olderRequests.map((at) => this.#items[at] as Item);
    const items = this.#first === 0 ? this.#items : [...olderRequests, ...this.#items.slice(this.#first)];
    return this.#omitted === 0 ? { items } : { items, omitted: this.#omitted };
  }

  #trim(): void {
    while (this.#count > 1 && (this.#count > MAX_TURN_ITEMS || this.#text > MAX_TURN_TEXT)) {
      const oldest = this.#items[this.#dropOldest()] as Item;
      this.#index.delete(keyOf(oldest));
      this.#text -= itemTextLength(oldest);
      this.#omitted += 1;
    }
  }

  get #count(): number {
    return this.#olderRequests.length + this.#items.length - this.#first;
  }

  /**
   * Drops the oldest item that is not a request. Requests stay, answered or not, until there are too many: readers see
   * answers at different times, and the result must not depend on that.
   *
   * @returns the index of the dropped item
   */
  #dropOldest(): number {
    let text = 0;
    for (const at of this.#olderRequests) text += itemTextLength(this.#items[at] as Item);
    while (text <= MAX_REQUEST_TEXT && this.#olderRequests.length <= MAX_PENDING_REQUESTS) {
      const at = this.#first;
      const item = this.#items[at] as Item;
      // The newest item always stays.
      if (at === this.#items.length - 1) break;
      this.#first += 1;
      if (item.kind !== 'request') return at;
      this.#olderRequests.push(at);
      text += itemTextLength(item);
    }
    return this.#olderRequests.shift() as number;
  }
}

/** A task has one item per start or end; everything else has one item. */
function keyOf(item: Item): string {
  return `${item.kind} ${item.kind === 'task' ? item.position : item.id}`;
}

/** Text length of items in UTF-16 code units, roughly their share of a page. */
export function itemsTextLength(items: readonly Item[]): number {
  return items.reduce((sum, item) => sum + itemTextLength(item), 0);
}

const INPUT_LENGTHS = new WeakMap<object, number>();

/** Text length in UTF-16 code units. */
function itemTextLength(item: Item): number {
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

/** Appends the event's text to an item, or replaces the text if the event carries the whole. */
export function withDelta<Name extends string, T extends { [name in Name]: string } & { cut?: number }>(
  item: T,
  name: Name,
  { event }: EventEntry,
): T {
  const delta = contentText(event.delta);
  const isWhole = readInterlude(event).whole === true;
  // A truncated text no longer grows.
  const before = isWhole ? 0 : (item.cut ?? 0);
  const text = isWhole ? delta : before > 0 ? item[name] : item[name] + delta;
  const shown = truncateText(text, MAX_ITEM_TEXT);
  const cut = before > 0 ? before + delta.length : text.length - shown.length;
  return withCut({ ...item, [name]: shown }, cut);
}

/** @param cut number of UTF-16 code units not shown */
export function withCut<T extends { cut?: number }>({ cut: _before, ...item }: T, cut: number): T {
  return (cut === 0 ? item : { ...item, cut }) as T;
}

/**
 * Parses the arguments of a call. Null while the JSON is incomplete, and if it exceeds the depth or size limits of a
 * record: arguments arrive as text, to which these limits don't apply, and code that walks them must not overflow the
 * stack or take too long. Such arguments are shown as text.
 */
export function parseArgs(argsText: string): unknown {
  // Arguments stream in pieces, so most texts end before the JSON does.
  if (!/[}\]"\del]/.test(lastCharacter(argsText)) || !isBounded(argsText)) return null;
  try {
    // An escape may encode half of a surrogate pair.
    return parseWellFormed(argsText);
  } catch {
    return null;
  }
}

function lastCharacter(text: string): string {
  let at = text.length - 1;
  while (at >= 0 && JSON_WHITESPACE.includes(text.charAt(at))) at -= 1;
  return text.charAt(at);
}

const JSON_WHITESPACE = ' \t\r\n';

function isBounded(json: string): boolean {
  const { values, tooDeepAt } = measureJson(new TextEncoder().encode(json));
  return tooDeepAt === null && values <= MAX_ARGS_VALUES;
}
