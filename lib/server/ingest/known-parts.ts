import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { contentText, inputUserMessages, streamedKind } from '@interlude/protocol/event-fields';
import { textOf } from '@interlude/protocol/fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';
import { positionToNumber } from '@interlude/protocol/position';
import type { Placement } from '@interlude/protocol/projections/placement';
import type { SnapshotPart } from '@interlude/protocol/projections/snapshot-parts';
import type { Obligation } from '@interlude/protocol/read-models';
import type { Pace } from '@/db/next-turn';
import type { SaidRow } from '@/lib/server/event-log/read-batch-state';
import { MOST_SAID_ROWS } from '@/lib/server/event-log/said-rows';
import { type KnownPart, keyOf, type Stand, type Twins } from './snapshot-twins';

/**
 * The texts, thoughts and calls that a session has shown, as far as its snapshots may repeat them. Bounded by the rows that
 * a batch reads.
 */
export class KnownParts {
  readonly #parts = new Map<string, KnownPart>();
  readonly #owed: ReadonlySet<string>;

  private constructor(obligations: readonly Obligation[]) {
    this.#owed = new Set(obligations.map(({ messageId }) => messageId));
  }

  /**
   * @param rows the newest of each, and of the session, in the order of the log
   * @param removedUpTo the turns that began up to here are gone; 0 if none is
   */
  static async of(
    rows: readonly SaidRow[],
    obligations: readonly Obligation[],
    pace: Pace,
    removedUpTo = 0,
  ): Promise<KnownParts> {
    const known = new KnownParts(obligations);
    const counts = new Map<string, number>();
    for (const { entityId } of rows) counts.set(entityId, (counts.get(entityId) ?? 0) + 1);
    await pace.each(rows, ({ entityId, type, position, turnId: toldIn, payload }) => {
      const at = { position, turnId: position > removedUpTo ? toldIn : null };
      const isAll = (counts.get(entityId) ?? 0) < MOST_SAID_ROWS;
      known.#take(entityId, payload === null ? { type } : JSON.parse(payload), at, isAll ? '' : null);
      const cut =
        payload === null && !type.endsWith('_END') ? known.get(`${streamedKind(type)} ${entityId}`) : undefined;
      if (cut !== undefined) cut.text = null;
    });
    return known;
  }

  see({ entry: { event, position }, entityId, turnId, moves }: Placement): void {
    for (const move of moves) {
      const message = move.position === null ? this.get(`text ${move.entityId}`) : undefined;
      if (message?.turnId === move.fromTurnId) message.turnId = move.toTurnId;
    }
    this.#take(entityId, event, { turnId, position: positionToNumber(position) }, '');
  }

  /**
   * Index of the first part that was not removed from the session. Unknown parts before the first known one were; where
   * none is known, those up to the last that was removed.
   */
  firstLeft(parts: readonly SnapshotPart[], lastId: string | undefined): number {
    const known = parts.findIndex((part) => this.get(keyOf(part)) !== undefined);
    return known >= 0 ? known : parts.findLastIndex(({ id }) => id === lastId) + 1;
  }

  /**
   * Place of a part of a snapshot; undefined if the part is not news.
   *
   * @param twins those of the snapshot, from before its first part was placed
   * @returns `turnId` null: where the snapshot stands; `sameAs`: key of the part that it repeats, so that it is not shown;
   *   `id` under which it is written, if that is not its own
   */
  placeFor(part: SnapshotPart, twins: Twins): { turnId: string | null; sameAs?: string; id?: string } | undefined {
    const { kind, id, text } = part;
    const known = this.get(keyOf(part));
    // A message that came with the input of a run is not in the log under its own id.
    if (known === undefined && kind === 'text' && this.#owed.has(id)) return undefined;
    const twin = known === undefined ? twins.get(keyOf(part)) : this.get(known.sameAs ?? '');
    if (kind === 'result' && twin !== undefined) {
      if (twin.result !== null) return undefined;
      return { turnId: twin.turnId, id: twin.key.slice('tool '.length) };
    }
    if (known?.sameAs !== undefined) return undefined;
    if (known !== undefined) {
      return (kind === 'result' ? known.result : known.text) === text ? undefined : { turnId: known.turnId };
    }
    return twin === undefined ? { turnId: null } : { turnId: twin.turnId, sameAs: twin.key };
  }

  get(key: string): KnownPart | undefined {
    return this.#parts.get(key);
  }

  all(): Iterable<KnownPart> {
    return this.#parts.values();
  }

  /** @param before the text before the part's first known row; null if that is unknown */
  #take(id: string | null, event: AgUiEvent, at: Stand, before: string | null): void {
    const inInput = event.type === 'RUN_STARTED' ? inputUserMessages(event) : [];
    for (const said of inInput) this.#begin(`text ${said.id}`, { ...at, text: said.text, by: 'user' });
    const { ofSnapshot, whole } = readInterlude(event);
    const sameAs = ofSnapshot?.sameAs;
    const kind = sameAs === undefined ? streamedKind(event.type) : kindOf(sameAs);
    if (id === null || kind == null) return;
    const part = this.#begin(`${kind} ${id}`, { ...at, text: before, by: kind === 'text' ? 'assistant' : '' });
    if (sameAs !== undefined) part.sameAs = sameAs;
    part.turnId = at.turnId ?? part.turnId;
    part.by = (kind === 'text' ? textOf(event.role) : textOf(event.toolCallName)) ?? part.by;
    if (event.type.endsWith('_START')) part.text = '';
    else if (/_(CONTENT|ARGS|CHUNK)$/.test(event.type)) {
      const delta = contentText(event.delta);
      part.text = whole === true ? delta : part.text === null ? null : part.text + delta;
    }
    const result = event.type === 'TOOL_CALL_RESULT' ? (event.content ?? '') : event.result;
    if (kind === 'tool' && result !== undefined) part.result = contentText(result);
  }

  /** A row of a part proves that the part began. @returns the part that is known already, else the new one */
  #begin(key: string, part: Pick<KnownPart, 'position' | 'turnId' | 'text' | 'by'>): KnownPart {
    const known = this.get(key);
    if (known !== undefined) return known;
    const fresh = { ...part, key, result: null };
    this.#parts.set(key, fresh);
    return fresh;
  }
}

function kindOf(key: string) {
  return (['text', 'reasoning', 'tool'] as const).find((kind) => key.startsWith(`${kind} `));
}
