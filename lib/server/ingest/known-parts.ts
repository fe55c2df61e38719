import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { contentText, inputUserMessages, streamedKind } from '@interlude/protocol/event-fields';
import { parseJson, textOf } from '@interlude/protocol/fields';
import { addTo } from '@interlude/protocol/grouped';
import { interludeOf } from '@interlude/protocol/interlude-metadata';
import { positionToNumber } from '@interlude/protocol/position';
import type { Placement } from '@interlude/protocol/projections/placement';
import type { SnapshotPart } from '@interlude/protocol/projections/snapshot-parts';
import type { Obligation } from '@interlude/protocol/read-models';
import type { Yielder } from '@/db/yield-to-loop';
import { MAX_ROWS_PER_PART } from '@/lib/server/event-log/batch-lookups';
import type { PartRow } from '@/lib/server/event-log/read-batch-state';

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
    rows: readonly PartRow[],
    obligations: readonly Obligation[],
    yielder: Yielder,
    removedUpTo = 0,
  ): Promise<KnownParts> {
    const known = new KnownParts(obligations);
    const counts = new Map<string, number>();
    for (const { entityId } of rows) counts.set(entityId, (counts.get(entityId) ?? 0) + 1);
    await yielder.each(rows, ({ entityId, type, position, turnId: toldIn, payload }) => {
      const at = { position, turnId: position > removedUpTo ? toldIn : null };
      const isAll = (counts.get(entityId) ?? 0) < MAX_ROWS_PER_PART;
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
    const known = parts.findIndex((part) => this.get(partKey(part)) !== undefined);
    return known >= 0 ? known : parts.findLastIndex(({ id }) => id === lastId) + 1;
  }

  /**
   * Place of a part of a snapshot; undefined if the part is not news.
   *
   * @param twins those of the snapshot, from before its first part was placed
   * @returns `turnId` null: where the snapshot stands; `sameAs`: key of the part that it repeats, so that it is not shown;
   *   `id` under which it is written, if that is not its own
   */
  placeFor(
    part: SnapshotPart,
    twins: PartMatches,
  ): { turnId: string | null; sameAs?: string; id?: string } | undefined {
    const { kind, id, text } = part;
    const known = this.get(partKey(part));
    // A message that came with the input of a run is not in the log under its own id.
    if (known === undefined && kind === 'text' && this.#owed.has(id)) return undefined;
    const twin = known === undefined ? twins.get(partKey(part)) : this.get(known.sameAs ?? '');
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
  #take(id: string | null, event: AgUiEvent, at: PartPlace, before: string | null): void {
    const inInput = event.type === 'RUN_STARTED' ? inputUserMessages(event) : [];
    for (const said of inInput) this.#begin(`text ${said.id}`, { ...at, text: said.text, by: 'user' });
    const { ofSnapshot, whole } = interludeOf(event);
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

type PartPlace = Pick<KnownPart, 'position' | 'turnId'>;

/** A text, thought or call that a session has shown. */
interface KnownPart {
  /** `text <id>`, `reasoning <id>` or `tool <id>`. */
  key: string;
  turnId: string | null;
  /** Null if the newest rows don't have all of it. */
  text: string | null;
  result: string | null;
  /** Of its first known row. */
  position: number;
  /** The role of a message, the name of a call's tool. */
  by: string;
  /** Key of the part that it repeats under another id. */
  sameAs?: string;
}

/** Known parts that the parts of a snapshot repeat under ids of their own, by the keys of the latter. */
type PartMatches = ReadonlyMap<string, KnownPart>;

/**
 * Finds the parts of a snapshot that are known under another id: some servers stream an answer under one id and list it
 * under another. A part with an unknown id repeats a known one of the same role with the same words, unless the snapshot
 * itself lists that one. Both lists are matched from their ends, in order.
 */
export async function matchParts(
  parts: readonly SnapshotPart[],
  known: { get: (key: string) => KnownPart | undefined; all: () => Iterable<KnownPart> },
  yielder: Yielder,
): Promise<PartMatches> {
  const twins = new Map<string, KnownPart>();
  const unknown = parts.filter((part) => part.kind !== 'result' && known.get(partKey(part)) === undefined);
  if (unknown.length === 0) return twins;
  const sizes = new Set(unknown.map((part) => sizeKey(partKey(part), authorOf(part), part.text)));
  const named = new Set(parts.flatMap((part) => [partKey(part), known.get(partKey(part))?.sameAs ?? '']));
  const alike = new Map<string, KnownPart[]>();
  const newest: { person: PartPlace | null; agent: PartPlace | null } = { person: null, agent: null };
  await yielder.each(known.all(), (one) => {
    const { key, turnId, text, sameAs, by } = one;
    if (turnId === null || turnId.startsWith('task:') || sameAs !== undefined) return;
    const who = by === 'user' ? 'person' : 'agent';
    if (one.position > (newest[who]?.position ?? 0)) newest[who] = one;
    if (text === null) return;
    if (!named.has(key) && sizes.has(sizeKey(key, by, text))) addTo(alike, contentKey(key, by, text), one);
  });
  for (const candidates of alike.values()) candidates.sort((a, b) => a.position - b.position);
  // A match stands behind the last known part before it, and before the next known or matched part.
  let previous: PartPlace = { position: 0, turnId: null };
  const lowest = new Map<SnapshotPart, PartPlace>();
  // Of a part with two ids, that of the first, if it is loaded.
  const standOf = (part: SnapshotPart) => {
    const one = part.kind === 'result' ? undefined : known.get(partKey(part));
    return one?.sameAs === undefined ? one : known.get(one.sameAs);
  };
  await yielder.each(parts, (part) => {
    lowest.set(part, previous);
    previous = standOf(part) ?? previous;
  });
  let next: PartPlace | null = null;
  await yielder.each(parts.toReversed(), (part) => {
    next = standOf(part) ?? next;
    if (known.get(partKey(part)) !== undefined || part.kind === 'result') return;
    const by = authorOf(part);
    const found = takeMatch(alike.get(contentKey(partKey(part), by, part.text)) ?? [], {
      lower: lowest.get(part) ?? previous,
      next,
      // A person's message stands in the turn of its answer, and the last part in the newest turn.
      turnId: by === 'user' ? (next ?? newest.person)?.turnId : next === null ? newest.agent?.turnId : null,
    });
    if (found === null) return;
    twins.set(partKey(part), found);
    next = found;
  });
  return twins;
}

/** Key of a part, which a call shares with its result. */
function partKey({ kind, id }: SnapshotPart): string {
  return `${kind === 'call' || kind === 'result' ? 'tool' : kind} ${id}`;
}

/**
 * Removes and returns the newest candidate that fits; drops those that are too new.
 *
 * @param candidates in the order of the log
 * @param turnId the turn it must belong to; candidates outside of turns fit, too
 */
function takeMatch(
  candidates: KnownPart[],
  { lower, next, turnId }: { lower: PartPlace; next: PartPlace | null; turnId: string | null | undefined },
): KnownPart | null {
  for (let twin = candidates.at(-1); twin !== undefined; twin = candidates.at(-1)) {
    if (twin.position <= lower.position && twin.turnId !== lower.turnId) return null;
    const isTooNew = next !== null && twin.position >= next.position && twin.turnId !== next.turnId;
    const isElsewhere = turnId != null && twin.turnId !== turnId && twin.turnId?.startsWith('none:') !== true;
    if (!isTooNew && isElsewhere) return null;
    candidates.pop();
    if (!isTooNew) return twin;
  }
  return null;
}

function authorOf({ fields: { role, toolCallName } }: SnapshotPart): string {
  return textOf(role) ?? textOf(toolCallName) ?? '';
}

/** Key that equal parts share. Servers format arguments and trailing whitespace differently. */
function contentKey(key: string, by: string, text: string): string {
  const args = key.startsWith('tool ') ? parseJson(text === '' ? '{}' : text) : null;
  return JSON.stringify([sizeKey(key, by, text), args ?? text.trim()]);
}

/** The cheap part of that key. */
function sizeKey(key: string, by: string, text: string): string {
  const kind = key.slice(0, key.indexOf(' '));
  return `${kind} ${by} ${kind === 'tool' ? '' : text.trim().length}`;
}
