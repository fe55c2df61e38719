import { editLength } from '../event-fields';
import { MAX_PENDING_REQUESTS, MAX_TURN_ITEMS, MAX_TURN_TEXT } from '../limits';
import type { Item, ItemKind } from '../read-models';

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
