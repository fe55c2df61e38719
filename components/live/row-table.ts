import { comparePositions, ORIGIN, type Position } from '@interlude/protocol/position';

interface Kind<Row> {
  idOf: (row: Row) => string;
  /** The lists that a row belongs into. */
  listsOf: (row: Row) => string[];
  /** Whether a row is kept that is in no list. */
  keepsAll: boolean;
  /** Called before a row changes. `known`: the row as it was read at a position. */
  onChange?: (row: Row, known: { row: Row; at: Position } | undefined) => void;
}

/** What was read of a list. */
export interface ReadList<Row> {
  rows: readonly Row[];
  position: Position;
  /** Where the next page begins; null at the end, left out if this is no page of the list. */
  next?: string | null;
  /** The cursor that this page was read with; left out for the first one. */
  after?: string | undefined;
  /** As the answer has it: of agents how many there are, of tasks how many are not listed. */
  count?: number;
}

/** A list as it is shown: the same object until it changes. */
export interface ShownList<Row> {
  rows: readonly Row[];
  next: string | null;
  count: number;
}

interface List<Row> {
  ids: Set<string>;
  /** Everything about it that has come since is among its rows; null: since the stream began. */
  since: Position | null;
  /** Whether its beginning was read, and not only a part of it. */
  isRead: boolean;
  isShown: boolean;
  next: string | null;
  count: number;
  shown: ShownList<Row> | null;
}

/**
 * Rows of one kind by id, each with the position it was read at, and the lists that they stand in.
 *
 * Ordering: of two readings of a row the later one is right, whichever came first. A list that is read again only gets
 * longer: what left it meanwhile has said so itself.
 */
export class RowTable<Row extends object> {
  readonly #kind: Kind<Row>;
  readonly #rows = new Map<string, { row: Row; at: Position }>();
  readonly #lists = new Map<string, List<Row>>();

  constructor(kind: Kind<Row>) {
    this.#kind = kind;
  }

  get(id: string): Row | undefined {
    return this.#rows.get(id)?.row;
  }

  rows(): Iterable<{ row: Row }> {
    return this.#rows.values();
  }

  /** Forgets a row. @returns up to where it was known */
  letGo(id: string): Position | undefined {
    const held = this.#rows.get(id);
    if (held === undefined) return undefined;
    for (const list of this.#listsOf(held.row)) if (list.ids.delete(id)) list.shown = null;
    this.#rows.delete(id);
    return held.at;
  }

  /** What a row has become by itself, without news of it. */
  amend(row: Row): void {
    const held = this.#rows.get(this.#kind.idOf(row));
    if (held === undefined) return;
    held.row = row;
    for (const list of this.#listsOf(row)) list.shown = null;
  }

  /** Undefined until some of it was read. */
  list(name: string): ShownList<Row> | undefined {
    const list = this.#lists.get(name);
    if (!list?.isShown) return undefined;
    list.shown ??= {
      rows: [...list.ids].flatMap((id) => this.get(id) ?? []),
      next: list.next,
      count: list.count,
    };
    return list.shown;
  }

  isRead(name: string): boolean {
    return this.#lists.get(name)?.isRead ?? false;
  }

  /** From now on what comes of a list is kept. @returns since when it is; null: since the stream began */
  hold(name: string, since: Position | null): Position | null {
    return this.#list(name, since).since;
  }

  /** A list that nobody shows any more. */
  drop(name: string): void {
    const list = this.#lists.get(name);
    this.#lists.delete(name);
    if (!this.#kind.keepsAll) for (const id of list?.ids ?? []) this.#rows.delete(id);
  }

  /** The stream begins again at `after`, and tells all lists what has come since. */
  rewind(after: Position): void {
    for (const list of this.#lists.values()) {
      if (list.since !== null && comparePositions(list.since, after) > 0) list.since = after;
    }
  }

  /** What is shown may be wrong: whatever is read next takes its place. */
  reset(): void {
    for (const held of this.#rows.values()) held.at = ORIGIN;
    for (const list of this.#lists.values()) Object.assign(list, { isRead: false, since: null });
  }

  /** A row that has just changed: it stands in its lists from now on. */
  takeNews(row: Row, at: Position): void {
    const lists = this.#listsOf(row);
    if (!this.#kind.keepsAll && lists.length === 0) return;
    this.take(row, at);
    const id = this.#kind.idOf(row);
    for (const list of lists) {
      if (list.ids.has(id)) continue;
      list.ids.add(id);
      list.shown = null;
    }
  }

  /** A row that was read, of which a later reading may be known. */
  take(row: Row, at: Position): void {
    const id = this.#kind.idOf(row);
    const known = this.#rows.get(id);
    if (known !== undefined && comparePositions(at, known.at) <= 0) return;
    if (known !== undefined && known.at !== ORIGIN && isSameVersion(known.row, row)) {
      known.at = at;
      return;
    }
    this.#kind.onChange?.(row, known);
    this.#rows.set(id, { row, at });
    for (const list of this.#listsOf(row)) list.shown = null;
  }

  /** @param isPart it is only a part of the list that came with the page, and is yet to be read */
  takeList(name: string, { rows, position, next, after, count }: ReadList<Row>, isPart = false): void {
    const list = this.#list(name, null);
    const ids = rows.map(this.#kind.idOf);
    if (list.isRead) {
      for (const id of ids) list.ids.add(id);
      if (after === list.next && next !== undefined) list.next = next;
    } else {
      const come = [...list.ids].filter((id) => comparePositions(this.#rows.get(id)?.at ?? ORIGIN, position) > 0);
      list.ids = new Set([...ids, ...come]);
      list.isRead = !isPart;
      list.next = next ?? null;
    }
    list.isShown = true;
    list.count = count ?? list.count;
    list.shown = null;
    for (const row of rows) this.take(row, position);
  }

  /** Rows of a list from anywhere in it. One that is not read yet is no longer for them. */
  takeSome(name: string, rows: readonly Row[], position: Position): void {
    const list = this.#list(name, null);
    for (const row of rows) {
      if (list.isRead) list.ids.add(this.#kind.idOf(row));
      this.take(row, position);
    }
    list.shown = null;
  }

  #listsOf(row: Row): List<Row>[] {
    return this.#kind.listsOf(row).flatMap((name) => this.#lists.get(name) ?? []);
  }

  #list(name: string, since: Position | null): List<Row> {
    const known = this.#lists.get(name);
    if (known !== undefined) return known;
    const list = { ids: new Set<string>(), since, isRead: false, isShown: false, next: null, count: 0, shown: null };
    this.#lists.set(name, list);
    return list;
  }
}

/** Rows that say where they changed last are the same as long as that is. */
function isSameVersion(known: object, row: object): boolean {
  return 'updatedPosition' in known && 'updatedPosition' in row && known.updatedPosition === row.updatedPosition;
}
