import { comparePositions, ORIGIN, type Position } from '@interlude/protocol/position';

interface Kind<Row> {
  idOf: (row: Row) => string;
  /** Names of the lists with this row. */
  listsOf: (row: Row) => string[];
  /** True to keep rows that are in no list. */
  keepsAll: boolean;
  /** Called before a row changes. `known`: the row as last read since the last gap. */
  onChange?: (row: Row, known: Row | undefined) => void;
}

/** A page of a list. */
interface ReadList<Row> {
  rows: readonly Row[];
  position: Position;
  /** Cursor of the next page; null at the end, omitted if the rows are not a page of the list. */
  next?: string | null;
  /** Cursor of this page; omitted for the first one. */
  after?: string | undefined;
  /** The response's count: all agents, or the tasks that are not listed. */
  count?: number;
}

/** A list as shown: stable until it changes. */
export interface ShownList<Row> {
  rows: readonly Row[];
  next: string | null;
  count: number;
}

interface List<Row> {
  ids: Set<string>;
  /** The list contains all changes since this position; null: since the stream started. */
  since: Position | null;
  /** True once the list was read from its beginning, not only in part. */
  isRead: boolean;
  isShown: boolean;
  next: string | null;
  count: number;
  /** Null after a possible change. */
  shown: ShownList<Row> | null;
  lastShown: ShownList<Row> | null;
}

/**
 * Rows of one kind by id, with their positions and their lists.
 *
 * Ordering: the later version of a row wins. Reading a list again only adds rows; a row that left the list has had its
 * own update.
 */
export class RowTable<Row extends object> {
  readonly #kind: Kind<Row>;
  /** `read` is the row as the server sent it; `row` may have been advanced by the clock. */
  readonly #rows = new Map<string, { row: Row; read: Row; at: Position }>();
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

  /** Removes a row. @returns its position */
  remove(id: string): Position | undefined {
    const entry = this.#rows.get(id);
    if (entry === undefined) return undefined;
    for (const list of this.#listsOf(entry.row)) if (list.ids.delete(id)) list.shown = null;
    this.#rows.delete(id);
    return entry.at;
  }

  /** Replaces a row that changed without an update from the server. */
  replace(row: Row): void {
    const entry = this.#rows.get(this.#kind.idOf(row));
    if (entry === undefined) return;
    entry.row = row;
    for (const list of this.#listsOf(row)) list.shown = null;
  }

  /** Undefined until part of the list is loaded. */
  list(name: string): ShownList<Row> | undefined {
    const list = this.#lists.get(name);
    if (!list?.isShown) return undefined;
    if (list.shown === null) {
      const rows = [...list.ids].flatMap((id) => this.get(id) ?? []);
      const now = { rows, next: list.next, count: list.count };
      // A new object would interrupt a page that is being rendered and reads the same rows again.
      list.shown = list.lastShown !== null && isSameList(list.lastShown, now) ? list.lastShown : now;
      list.lastShown = list.shown;
    }
    return list.shown;
  }

  isRead(name: string): boolean {
    return this.#lists.get(name)?.isRead ?? false;
  }

  /**
   * Retains a list's rows from now on. @returns the position from which they are retained; null: the stream's start
   */
  retain(name: string, since: Position | null): Position | null {
    return this.#list(name, since).since;
  }

  /** Removes a list that is no longer shown. */
  drop(name: string): void {
    const list = this.#lists.get(name);
    this.#lists.delete(name);
    if (!this.#kind.keepsAll) for (const id of list?.ids ?? []) this.#rows.delete(id);
  }

  /** The stream restarts at `after` and repeats everything since. */
  rewind(after: Position): void {
    for (const list of this.#lists.values()) {
      if (list.since !== null && comparePositions(list.since, after) > 0) list.since = after;
    }
  }

  /** After a gap: the next read replaces what is shown. */
  reset(): void {
    for (const entry of this.#rows.values()) entry.at = ORIGIN;
    for (const list of this.#lists.values()) Object.assign(list, { isRead: false, since: null });
  }

  /** Applies an update and adds the row to its lists. */
  update(row: Row, at: Position): void {
    const lists = this.#listsOf(row);
    if (!this.#kind.keepsAll && lists.length === 0) return;
    this.put(row, at);
    const id = this.#kind.idOf(row);
    for (const list of lists) {
      if (list.ids.has(id)) continue;
      list.ids.add(id);
      list.shown = null;
    }
  }

  /** Applies a row unless a later version is known. */
  put(row: Row, at: Position): void {
    const id = this.#kind.idOf(row);
    const known = this.#rows.get(id);
    if (known !== undefined && comparePositions(at, known.at) <= 0) return;
    if (known !== undefined && known.at !== ORIGIN && isSameVersion(known.row, row)) {
      known.at = at;
      return;
    }
    // After a gap, the row may have changed and changed back.
    this.#kind.onChange?.(row, known?.at === ORIGIN ? undefined : known?.read);
    this.#rows.set(id, { row, read: row, at });
    for (const list of this.#listsOf(row)) list.shown = null;
  }

  /** @param isPart only the part that the server rendered; the list is still to be read */
  putList(name: string, { rows, position, next, after, count }: ReadList<Row>, isPart = false): void {
    const list = this.#list(name, null);
    const ids = rows.map(this.#kind.idOf);
    if (list.isRead) {
      for (const id of ids) list.ids.add(id);
      if (after === list.next && next !== undefined) list.next = next;
    } else {
      const newer = [...list.ids].filter((id) => comparePositions(this.#rows.get(id)?.at ?? ORIGIN, position) > 0);
      list.ids = new Set([...ids, ...newer]);
      list.isRead = !isPart;
      list.next = next ?? null;
    }
    list.isShown = true;
    list.count = count ?? list.count;
    list.shown = null;
    for (const row of rows) this.put(row, position);
  }

  /** Adds rows from anywhere in a list, if the list has been read. */
  putRows(name: string, rows: readonly Row[], position: Position): void {
    const list = this.#list(name, null);
    for (const row of rows) {
      if (list.isRead) list.ids.add(this.#kind.idOf(row));
      this.put(row, position);
    }
    list.shown = null;
  }

  #listsOf(row: Row): List<Row>[] {
    return this.#kind.listsOf(row).flatMap((name) => this.#lists.get(name) ?? []);
  }

  #list(name: string, since: Position | null): List<Row> {
    const known = this.#lists.get(name);
    if (known !== undefined) return known;
    const empty = { ids: new Set<string>(), since, isRead: false, isShown: false, next: null, count: 0 };
    const list = { ...empty, shown: null, lastShown: null };
    this.#lists.set(name, list);
    return list;
  }
}

function isSameList<Row>(one: ShownList<Row>, other: ShownList<Row>): boolean {
  if (one.next !== other.next || one.count !== other.count || one.rows.length !== other.rows.length) return false;
  return one.rows.every((row, index) => row === other.rows[index]);
}

/** Rows with the same `updatedPosition` are equal. */
function isSameVersion(known: object, row: object): boolean {
  return 'updatedPosition' in known && 'updatedPosition' in row && known.updatedPosition === row.updatedPosition;
}
