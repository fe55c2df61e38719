import type { Pace } from '@/db/next-turn';
import type { SaidRow } from '@/lib/event-log/read-batch-state';
import { MOST_SAID_ROWS } from '@/lib/event-log/said-rows';
import { contentText, inputUserMessages, streamedKind } from '@/lib/projections/event-fields';
import { interludeOf } from '@/lib/projections/interlude-metadata';
import type { Placement } from '@/lib/projections/placement';
import type { SnapshotPart } from '@/lib/projections/snapshot-parts';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import type { Obligation } from '@/lib/protocol/read-models';

interface Said {
  turnId: string | null;
  /** Null if the newest rows don't have all of it. */
  text: string | null;
  result: string | null;
}

/** What a session had already said of the messages and calls in its snapshots. */
export class SaidBefore {
  readonly #said = new Map<string, Said>();
  readonly #owed: ReadonlySet<string>;

  private constructor(obligations: readonly Obligation[]) {
    this.#owed = new Set(obligations.map(({ messageId }) => messageId));
  }

  /**
   * @param rows the newest of each, in the order of the log
   * @param removedUpTo the turns that began up to here are gone; 0 if none is
   */
  static async of(
    rows: readonly SaidRow[],
    obligations: readonly Obligation[],
    pace: Pace,
    removedUpTo = 0,
  ): Promise<SaidBefore> {
    const before = new SaidBefore(obligations);
    const counts = new Map<string, number>();
    for (const { entityId } of rows) counts.set(entityId, (counts.get(entityId) ?? 0) + 1);
    await pace.each(rows, ({ entityId, type, position, turnId: toldIn, payload }) => {
      const turnId = position > removedUpTo ? toldIn : null;
      const isAll = (counts.get(entityId) ?? 0) < MOST_SAID_ROWS;
      const event: AgUiEvent = payload === null ? { type } : JSON.parse(payload);
      before.#tell(entityId, event, turnId, isAll ? '' : null);
      if (payload === null) before.#forgetText(entityId, type);
    });
    return before;
  }

  see({ entry: { event }, entityId, turnId, moves }: Placement): void {
    for (const move of moves) {
      const said = move.position === null ? this.#said.get(`text ${move.entityId}`) : undefined;
      if (said?.turnId === move.fromTurnId) said.turnId = move.toTurnId;
    }
    if (entityId !== null) this.#tell(entityId, event, turnId, '');
    if (event.type !== 'RUN_STARTED') return;
    for (const { id, text } of inputUserMessages(event)) {
      if (!this.#said.has(`text ${id}`)) this.#said.set(`text ${id}`, { turnId, text, result: null });
    }
  }

  /**
   * What a session lacks of its snapshot from before the first part that it knows is what was removed of it; where it knows
   * none, what stands up to the last that was removed.
   *
   * @returns the index of the first part that may be told
   */
  firstLeft(parts: readonly SnapshotPart[], lastId: string | undefined): number {
    const known = parts.findIndex((part) => this.#find(part) !== undefined);
    return known >= 0 ? known : parts.findLastIndex(({ id }) => id === lastId) + 1;
  }

  /** @returns the turn in which the part is to be told, null for the place of its snapshot; undefined if it is not news */
  placeFor(part: SnapshotPart): string | null | undefined {
    const { kind, id, text } = part;
    const said = this.#find(part);
    // A message that came with the input of a run is not in the log under its own id.
    if (said === undefined) return kind === 'text' && this.#owed.has(id) ? undefined : null;
    const isNews = (kind === 'result' ? said.result : said.text) !== text;
    return isNews ? said.turnId : undefined;
  }

  #find({ kind, id }: SnapshotPart): Said | undefined {
    return this.#said.get(`${kind === 'call' || kind === 'result' ? 'tool' : kind} ${id}`);
  }

  #tell(id: string, event: AgUiEvent, turnId: string | null, before: string | null): void {
    const kind = streamedKind(event.type);
    if (kind === null) return;
    const key = `${kind} ${id}`;
    const said = this.#said.get(key) ?? { turnId, text: before, result: null };
    this.#said.set(key, said);
    said.turnId = turnId ?? said.turnId;
    if (event.type.endsWith('_START')) said.text = '';
    else if (/_(CONTENT|ARGS|CHUNK)$/.test(event.type)) {
      const delta = contentText(event.delta);
      if (interludeOf(event).whole === true) said.text = delta;
      else if (said.text !== null) said.text += delta;
    }
    if (event.type === 'TOOL_CALL_RESULT') said.result = contentText(event.content);
    else if (event.type === 'TOOL_CALL_END' && event.result !== undefined) said.result = contentText(event.result);
  }

  #forgetText(id: string, type: string): void {
    const said = this.#said.get(`${streamedKind(type)} ${id}`);
    if (said !== undefined && !type.endsWith('_END')) said.text = null;
  }
}
