import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { contentText, inputUserMessages, streamedKind } from '@interlude/protocol/event-fields';
import { addTo, parseJson, textOf } from '@interlude/protocol/fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';
import { positionToNumber } from '@interlude/protocol/position';
import type { Placement } from '@interlude/protocol/projections/placement';
import type { SnapshotPart } from '@interlude/protocol/projections/snapshot-parts';
import type { Obligation } from '@interlude/protocol/read-models';
import type { Yielder } from '@/db/yield-to-loop';
import { MAX_ROWS_PER_PART } from '@/lib/server/event-log/batch-lookups';
import type { PartRow } from '@/lib/server/event-log/read-batch-state';

/** The texts, thoughts and calls of a session that its snapshots may repeat. Bounded by the rows that a batch reads. */
export class KnownParts {
  readonly #parts = new Map<string, KnownPart>();
  readonly #obligationIds: ReadonlySet<string>;

  private constructor(obligations: readonly Obligation[]) {
    this.#obligationIds = new Set(obligations.map(({ messageId }) => messageId));
  }

  /**
   * @param rows the newest rows of each part, and of the session, in log order
   * @param removedUpTo position up to which retention has removed turns
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
    await yielder.each(rows, ({ entityId, type, position, turnId, payload }) => {
      const at = { position, turnId: position > removedUpTo ? turnId : null };
      const isAll = (counts.get(entityId) ?? 0) < MAX_ROWS_PER_PART;
      known.#apply(entityId, payload === null ? { type } : JSON.parse(payload), at, isAll ? '' : null);
      const cut =
        payload === null && !type.endsWith('_END') ? known.get(`${streamedKind(type)} ${entityId}`) : undefined;
      if (cut !== undefined) cut.text = null;
    });
    return known;
  }

  add({ entry: { event, position }, entityId, turnId, moves }: Placement): void {
    for (const move of moves) {
      const message = move.position === null ? this.get(`text ${move.entityId}`) : undefined;
      if (message?.turnId === move.fromTurnId) message.turnId = move.toTurnId;
    }
    this.#apply(entityId, event, { turnId, position: positionToNumber(position) }, '');
  }

  /**
   * Index of the first part that retention has not removed. Unknown parts before the first known one were removed; if
   * no part is known, those up to the last removed id were.
   */
  firstKept(parts: readonly SnapshotPart[], lastId: string | undefined): number {
    const known = parts.findIndex((part) => this.get(partKey(part)) !== undefined);
    return known >= 0 ? known : parts.findLastIndex(({ id }) => id === lastId) + 1;
  }

  /**
   * Places a part of a snapshot. Returns undefined if the part is not new.
   *
   * @param matches the snapshot's matches, computed before its first part was placed
   * @returns `turnId`: null for the snapshot's own turn; `sameAs`: key of the part that this one repeats, which hides
   *   it; `id`: the id to write, if it differs
   */
  placeFor(
    part: SnapshotPart,
    matches: PartMatches,
  ): { turnId: string | null; sameAs?: string; id?: string } | undefined {
    const { kind, id, text } = part;
    const known = this.get(partKey(part));
    // A message that was part of a run's input has no row.
    if (known === undefined && kind === 'text' && this.#obligationIds.has(id)) return undefined;
    const match = known === undefined ? matches.get(partKey(part)) : this.get(known.sameAs ?? '');
    if (kind === 'result' && match !== undefined) {
      if (match.result !== null) return undefined;
      return { turnId: match.turnId, id: match.key.slice('tool '.length) };
    }
    if (known?.sameAs !== undefined) return undefined;
    if (known !== undefined) {
      return (kind === 'result' ? known.result : known.text) === text ? undefined : { turnId: known.turnId };
    }
    return match === undefined ? { turnId: null } : { turnId: match.turnId, sameAs: match.key };
  }

  get(key: string): KnownPart | undefined {
    return this.#parts.get(key);
  }

  all(): Iterable<KnownPart> {
    return this.#parts.values();
  }

  /** @param before text before the part's first known row; null if unknown */
  #apply(id: string | null, event: AgUiEvent, at: PartPlace, before: string | null): void {
    const inputMessages = event.type === 'RUN_STARTED' ? inputUserMessages(event) : [];
    for (const message of inputMessages) this.#part(`text ${message.id}`, { ...at, text: message.text, by: 'user' });
    const { ofSnapshot, whole } = readInterlude(event);
    const sameAs = ofSnapshot?.sameAs;
    const kind = sameAs === undefined ? streamedKind(event.type) : kindOf(sameAs);
    if (id === null || kind == null) return;
    const part = this.#part(`${kind} ${id}`, { ...at, text: before, by: kind === 'text' ? 'assistant' : '' });
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

  /** Returns the known part; adds an unknown one. */
  #part(key: string, part: Pick<KnownPart, 'position' | 'turnId' | 'text' | 'by'>): KnownPart {
    const known = this.get(key);
    if (known !== undefined) return known;
    const added = { ...part, key, result: null };
    this.#parts.set(key, added);
    return added;
  }
}

function kindOf(key: string) {
  return (['text', 'reasoning', 'tool'] as const).find((kind) => key.startsWith(`${kind} `));
}

type PartPlace = Pick<KnownPart, 'position' | 'turnId'>;

interface KnownPart {
  /** `text <id>`, `reasoning <id>` or `tool <id>`. */
  key: string;
  turnId: string | null;
  /** Null if the rows that were read lack some of the text. */
  text: string | null;
  result: string | null;
  /** Position of its first known row. */
  position: number;
  /** A message's role, or the tool of a call. */
  by: string;
  /** Key of the part that this one repeats under another id. */
  sameAs?: string;
}

/** By the key of a snapshot part: the known part that it repeats under another id. */
type PartMatches = ReadonlyMap<string, KnownPart>;

/**
 * Matches the parts of a snapshot that are known under another id, since some servers stream an answer under one id and
 * list it under another. A part with an unknown id repeats a known one with the same role and content, unless the snapshot
 * also lists that one. Both lists are matched in order from their ends.
 *
 * ```
 *  log        u1  a1  t1  a2            (t1 was streamed as t1, the snapshot lists it as x)
 *  snapshot   u1  a1  x   a2            x may only match between a1 (lower) and a2 (next)
 * ```
 */
export async function matchParts(
  parts: readonly SnapshotPart[],
  known: { get: (key: string) => KnownPart | undefined; all: () => Iterable<KnownPart> },
  yielder: Yielder,
): Promise<PartMatches> {
  const matches = new Map<string, KnownPart>();
  const unknown = parts.filter((part) => part.kind !== 'result' && known.get(partKey(part)) === undefined);
  if (unknown.length === 0) return matches;
  const sizes = new Set(unknown.map((part) => sizeKey(partKey(part), authorOf(part), part.text)));
  const named = new Set(parts.flatMap((part) => [partKey(part), known.get(partKey(part))?.sameAs ?? '']));
  const byContent = new Map<string, KnownPart[]>();
  const newest: { person: PartPlace | null; agent: PartPlace | null } = { person: null, agent: null };
  await yielder.each(known.all(), (one) => {
    const { key, turnId, text, sameAs, by } = one;
    if (turnId === null || turnId.startsWith('task:') || sameAs !== undefined) return;
    const author = by === 'user' ? 'person' : 'agent';
    if (one.position > (newest[author]?.position ?? 0)) newest[author] = one;
    if (text === null) return;
    if (!named.has(key) && sizes.has(sizeKey(key, by, text))) addTo(byContent, contentKey(key, by, text), one);
  });
  for (const candidates of byContent.values()) candidates.sort((a, b) => a.position - b.position);
  // A match lies after the last known part before the snapshot's part, and before the next known or matched one.
  let previous: PartPlace = { position: 0, turnId: null };
  const lowest = new Map<SnapshotPart, PartPlace>();
  // A part with two ids counts at the place of the first id, if that is loaded.
  const placeOf = (part: SnapshotPart) => {
    const one = part.kind === 'result' ? undefined : known.get(partKey(part));
    return one?.sameAs === undefined ? one : known.get(one.sameAs);
  };
  await yielder.each(parts, (part) => {
    lowest.set(part, previous);
    previous = placeOf(part) ?? previous;
  });
  let next: PartPlace | null = null;
  await yielder.each(parts.toReversed(), (part) => {
    next = placeOf(part) ?? next;
    if (known.get(partKey(part)) !== undefined || part.kind === 'result') return;
    const by = authorOf(part);
    const found = takeMatch(byContent.get(contentKey(partKey(part), by, part.text)) ?? [], {
      lower: lowest.get(part) ?? previous,
      next,
      // A user message belongs to the turn of its answer, and the last part to the newest turn.
      turnId: by === 'user' ? (next ?? newest.person)?.turnId : next === null ? newest.agent?.turnId : null,
    });
    if (found === null) return;
    matches.set(partKey(part), found);
    next = found;
  });
  return matches;
}

/** A call shares its key with its result. */
function partKey({ kind, id }: SnapshotPart): string {
  return `${kind === 'call' || kind === 'result' ? 'tool' : kind} ${id}`;
}

/**
 * Removes and returns the newest candidate that fits, and drops those that are too new.
 *
 * @param candidates in log order
 * @param turnId turn that the match must belong to; candidates outside of turns also fit
 */
function takeMatch(
  candidates: KnownPart[],
  { lower, next, turnId }: { lower: PartPlace; next: PartPlace | null; turnId: string | null | undefined },
): KnownPart | null {
  for (let match = candidates.at(-1); match !== undefined; match = candidates.at(-1)) {
    if (match.position <= lower.position && match.turnId !== lower.turnId) return null;
    const isTooNew = next !== null && match.position >= next.position && match.turnId !== next.turnId;
    const isElsewhere = turnId != null && match.turnId !== turnId && match.turnId?.startsWith('none:') !== true;
    if (!isTooNew && isElsewhere) return null;
    candidates.pop();
    if (!isTooNew) return match;
  }
  return null;
}

function authorOf({ fields: { role, toolCallName } }: SnapshotPart): string {
  return textOf(role) ?? textOf(toolCallName) ?? '';
}

/** Equal for equal parts, even if servers format arguments and trailing whitespace differently. */
function contentKey(key: string, by: string, text: string): string {
  const args = key.startsWith('tool ') ? parseJson(text === '' ? '{}' : text) : null;
  return JSON.stringify([sizeKey(key, by, text), args ?? text.trim()]);
}

/** A prefix of `contentKey` that is cheap to compute, and is compared first. */
function sizeKey(key: string, by: string, text: string): string {
  const kind = key.slice(0, key.indexOf(' '));
  return `${kind} ${by} ${kind === 'tool' ? '' : text.trim().length}`;
}
