import { GRAMMAR, type InputOf, type Kind, OPEN, type StateOf, type Verdict } from './grammar';

interface Entry<K extends Kind, About> {
  state: StateOf<K>;
  about: About;
}

/**
 * The things of one kind in a session, each in its state of the grammar, with the data that its owner keeps about it.
 *
 * Failure: bounded. The oldest ended things are forgotten. Once `mostOpen` are open, `crowded` names the one that its
 * owner has to end before another begins.
 *
 * @example
 * const calls = new Entities('call', { mostOpen: 512, mostEnded: 512 });
 * calls.take('toolu_1', 'start', { name: 'Bash' }); // 'begins'
 * calls.take('toolu_1', 'result');                  // 'ends'
 * calls.take('toolu_1', 'result');                  // 'repeats'
 */
export class Entities<K extends Kind, About = undefined> {
  readonly #table: Record<string, Record<string, readonly [string, Verdict]>>;
  readonly #isOpen: ReadonlySet<string>;
  readonly #initial: StateOf<K>;
  readonly #most: { open: number; ended: number };
  readonly #open = new Map<string, Entry<K, About>>();
  readonly #ended = new Map<string, Entry<K, About>>();

  constructor(kind: K, { mostOpen, mostEnded }: { mostOpen: number; mostEnded: number }) {
    this.#table = GRAMMAR[kind];
    this.#isOpen = OPEN[kind];
    this.#initial = Object.keys(GRAMMAR[kind])[0] as StateOf<K>;
    this.#most = { open: mostOpen, ended: mostEnded };
  }

  /** Ids of what is open, oldest first. */
  get open(): string[] {
    return [...this.#open.keys()];
  }

  /** Open things with what their owner keeps about them, oldest first. */
  entries(): [id: string, about: About][] {
    return [...this.#open].map(([id, { about }]) => [id, about]);
  }

  /** The data about all known things, open and ended. */
  *all(): Generator<About> {
    for (const { about } of this.#open.values()) yield about;
    for (const { about } of this.#ended.values()) yield about;
  }

  /** The open thing that has to end before another one can begin; null while there is room. */
  get crowded(): string | null {
    return this.#open.size < this.#most.open ? null : (this.#open.keys().next().value ?? null);
  }

  stateOf(id: string): StateOf<K> {
    return this.#find(id)?.state ?? this.#initial;
  }

  about(id: string): About | undefined {
    return this.#find(id)?.about;
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /**
   * Moves a thing on.
   *
   * @param about its data from here on; by default unchanged
   */
  take(id: string, input: InputOf<K>, about?: About): Verdict {
    const known = this.#find(id);
    const [next, verdict] = this.#step(known?.state ?? this.#initial, input);
    if (known === undefined && next === this.#initial) return verdict;
    this.#put(id, { state: next, about: about === undefined ? (known?.about as About) : about });
    return verdict;
  }

  /** The verdict on an input, without moving anything. */
  verdict(id: string, input: InputOf<K>): Verdict {
    return this.#step(this.stateOf(id), input)[1];
  }

  #step(state: StateOf<K>, input: InputOf<K>): readonly [StateOf<K>, Verdict] {
    const row = this.#table[state] as Record<string, readonly [string, Verdict]>;
    return row[input] as readonly [StateOf<K>, Verdict];
  }

  /** Ids of what has ended and is still known, oldest first. */
  get ended(): string[] {
    return [...this.#ended.keys()];
  }

  /** Forgets a thing, so that its id is as good as new. */
  forget(id: string): void {
    this.#open.delete(id);
    this.#ended.delete(id);
  }

  #find(id: string): Entry<K, About> | undefined {
    return this.#open.get(id) ?? this.#ended.get(id);
  }

  #put(id: string, entry: Entry<K, About>): void {
    if (this.#isOpen.has(entry.state)) {
      this.#ended.delete(id);
      this.#open.set(id, entry);
      return;
    }
    this.#open.delete(id);
    this.#ended.set(id, entry);
    if (this.#ended.size > this.#most.ended) this.#ended.delete(this.#ended.keys().next().value as string);
  }
}
