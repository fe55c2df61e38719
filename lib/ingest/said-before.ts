import type { Pace } from '@/db/next-turn';
import type { SaidRow } from '@/lib/event-log/read-batch-state';
import { MOST_SAID_ROWS } from '@/lib/event-log/said-rows';
import type { Placement } from '@/lib/projections/placement';
import type { SnapshotPart } from '@/lib/projections/snapshot-parts';
import type { AgUiEvent } from '@/lib/protocol/ag-ui';
import { contentText, inputUserMessages, streamedKind } from '@/lib/protocol/event-fields';
import { parseJson, textOf } from '@/lib/protocol/fields';
import { addTo } from '@/lib/protocol/grouped';
import { interludeOf } from '@/lib/protocol/interlude-metadata';
import { positionToNumber } from '@/lib/protocol/position';
import type { Obligation } from '@/lib/protocol/read-models';

interface Said {
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

type Stand = Pick<Said, 'position' | 'turnId'>;

/** Place of a part of a snapshot. `turnId` null: where the snapshot stands. */
export interface PartPlace {
  turnId: string | null;
  /** Key of the part that it repeats: it is remembered, and not shown. */
  sameAs?: string;
  /** Id under which it is written, if that is not its own. */
  id?: string;
}

/**
 * What a session had already said of the messages and calls in its snapshots.
 *
 * Some servers stream an answer under one id and list it under another. A part with an unknown id repeats a known one of
 * the same role with the same words, unless the snapshot itself lists that one. Both lists are matched from their ends,
 * in order.
 */
export class SaidBefore {
  readonly #said = new Map<string, Said>();
  readonly #owed: ReadonlySet<string>;
  /** Keys of what parts of the current snapshot repeat under ids of their own. */
  #twins: ReadonlyMap<SnapshotPart, string> = new Map();
  /** The same for calls, by their ids. */
  readonly #twinCalls = new Map<string, string>();

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
  ): Promise<SaidBefore> {
    const before = new SaidBefore(obligations);
    const counts = new Map<string, number>();
    for (const { entityId } of rows) counts.set(entityId, (counts.get(entityId) ?? 0) + 1);
    await pace.each(rows, ({ entityId, type, position, turnId: toldIn, payload }) => {
      const turnId = position > removedUpTo ? toldIn : null;
      const isAll = (counts.get(entityId) ?? 0) < MOST_SAID_ROWS;
      const event: AgUiEvent = payload === null ? { type } : JSON.parse(payload);
      before.#tell(entityId, event, turnId, position, isAll ? '' : null);
      before.#seeInput(event, turnId, position);
      if (payload === null) before.#forgetText(entityId, type);
    });
    return before;
  }

  see({ entry: { event, position: at }, entityId, turnId, moves }: Placement): void {
    for (const move of moves) {
      const said = move.position === null ? this.#said.get(`text ${move.entityId}`) : undefined;
      if (said?.turnId === move.fromTurnId) said.turnId = move.toTurnId;
    }
    const position = positionToNumber(at);
    if (entityId !== null) this.#tell(entityId, event, turnId, position, '');
    this.#seeInput(event, turnId, position);
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

  /** Matches the parts of the next snapshot. Call it before the first of them is placed. */
  async seeSnapshot(parts: readonly SnapshotPart[], pace: Pace): Promise<void> {
    const twins = new Map<SnapshotPart, string>();
    this.#twins = twins;
    const unknown = parts.filter((part) => part.kind !== 'result' && this.#find(part) === undefined);
    if (unknown.length === 0) return;
    const sizes = new Set(unknown.map((part) => sizeOf(keyOf(part), speakerOf(part), part.text)));
    const named = new Set(parts.flatMap((part) => [keyOf(part), this.#find(part)?.sameAs ?? '']));
    const alike = new Map<string, [string, Said][]>();
    const newest: { person: Stand | null; agent: Stand | null } = { person: null, agent: null };
    await pace.each(this.#said, ([key, said]) => {
      const { turnId, text, sameAs, by } = said;
      if (turnId === null || turnId.startsWith('task:') || sameAs !== undefined) return;
      const who = by === 'user' ? 'person' : 'agent';
      if (said.position > (newest[who]?.position ?? 0)) newest[who] = said;
      if (text === null) return;
      if (!named.has(key) && sizes.has(sizeOf(key, by, text))) addTo(alike, wordsOf(key, by, text), [key, said]);
    });
    // A match stands behind the last known part before it, and before the next known or matched part.
    let previous: Stand = { position: 0, turnId: null };
    const lowest = new Map<SnapshotPart, Stand>();
    await pace.each(parts, (part) => {
      lowest.set(part, previous);
      previous = this.#standOf(part) ?? previous;
    });
    let next: Stand | null = null;
    await pace.each(parts.toReversed(), (part) => {
      next = this.#standOf(part) ?? next;
      if (this.#find(part) !== undefined || part.kind === 'result') return;
      const found = takeTwin(alike.get(wordsOf(keyOf(part), speakerOf(part), part.text)) ?? [], {
        lower: lowest.get(part) ?? previous,
        next,
        // A person's message stands in the turn of its answer, and the last part in the newest turn.
        turnId:
          speakerOf(part) === 'user' ? (next ?? newest.person)?.turnId : next === null ? newest.agent?.turnId : null,
      });
      if (found === null) return;
      const [key, said] = found;
      twins.set(part, key);
      if (part.kind === 'call') this.#twinCalls.set(part.id, key);
      next = said;
    });
  }

  /** @returns undefined if it is not news */
  placeFor(part: SnapshotPart): PartPlace | undefined {
    const { kind, id, text } = part;
    const said = this.#find(part);
    // A message that came with the input of a run is not in the log under its own id.
    if (said === undefined && kind === 'text' && this.#owed.has(id)) return undefined;
    const callKey = kind === 'result' ? (said?.sameAs ?? this.#twinCalls.get(id)) : undefined;
    if (callKey !== undefined) {
      const call = this.#said.get(callKey);
      if (call === undefined || call.result !== null) return undefined;
      return { turnId: call.turnId, id: callKey.slice('tool '.length) };
    }
    if (said?.sameAs !== undefined) return undefined;
    if (said !== undefined) {
      const isNews = (kind === 'result' ? said.result : said.text) !== text;
      return isNews ? { turnId: said.turnId } : undefined;
    }
    const sameAs = this.#twins.get(part);
    return sameAs === undefined ? { turnId: null } : { turnId: this.#said.get(sameAs)?.turnId ?? null, sameAs };
  }

  /** Position of a known part; undefined for one with two ids whose first is not loaded. */
  #standOf(part: SnapshotPart): Stand | undefined {
    const said = part.kind === 'result' ? undefined : this.#find(part);
    return said?.sameAs === undefined ? said : this.#said.get(said.sameAs);
  }

  #find(part: SnapshotPart): Said | undefined {
    return this.#said.get(keyOf(part));
  }

  #tell(id: string, event: AgUiEvent, turnId: string | null, position: number, before: string | null): void {
    const { ofSnapshot, whole } = interludeOf(event);
    if (ofSnapshot?.sameAs !== undefined) {
      const { sameAs } = ofSnapshot;
      const [kind = ''] = sameAs.split(' ');
      this.#said.set(`${kind} ${id}`, { turnId, text: null, result: null, position, by: '', sameAs });
      return;
    }
    const kind = streamedKind(event.type);
    if (kind === null) return;
    const key = `${kind} ${id}`;
    const by = kind === 'text' ? 'assistant' : '';
    const said = this.#said.get(key) ?? { turnId, text: before, result: null, position, by };
    this.#said.set(key, said);
    said.turnId = turnId ?? said.turnId;
    said.by = (kind === 'text' ? textOf(event.role) : textOf(event.toolCallName)) ?? said.by;
    if (event.type.endsWith('_START')) said.text = '';
    else if (/_(CONTENT|ARGS|CHUNK)$/.test(event.type)) {
      const delta = contentText(event.delta);
      if (whole === true) said.text = delta;
      else if (said.text !== null) said.text += delta;
    }
    if (event.type === 'TOOL_CALL_RESULT') said.result = contentText(event.content);
    else if (event.type === 'TOOL_CALL_END' && event.result !== undefined) said.result = contentText(event.result);
  }

  #seeInput(event: AgUiEvent, turnId: string | null, position: number): void {
    if (event.type !== 'RUN_STARTED') return;
    for (const { id, text } of inputUserMessages(event)) {
      if (this.#said.has(`text ${id}`)) continue;
      this.#said.set(`text ${id}`, { turnId, text, result: null, position, by: 'user' });
    }
  }

  #forgetText(id: string, type: string): void {
    const said = this.#said.get(`${streamedKind(type)} ${id}`);
    if (said !== undefined && !type.endsWith('_END')) said.text = null;
  }
}

function keyOf({ kind, id }: SnapshotPart): string {
  return `${kind === 'call' || kind === 'result' ? 'tool' : kind} ${id}`;
}

/**
 * Removes and returns the newest candidate that fits; drops those that are too new.
 *
 * @param candidates in the order of the log
 * @param turnId the turn it must belong to; candidates outside of turns fit, too
 */
function takeTwin(
  candidates: [string, Said][],
  { lower, next, turnId }: { lower: Stand; next: Stand | null; turnId: string | null | undefined },
): [string, Said] | null {
  for (let twin = candidates.at(-1); twin !== undefined; twin = candidates.at(-1)) {
    const [, said] = twin;
    if (said.position <= lower.position && said.turnId !== lower.turnId) return null;
    const isTooNew = next !== null && said.position >= next.position && said.turnId !== next.turnId;
    const isElsewhere = turnId != null && said.turnId !== turnId && said.turnId?.startsWith('none:') !== true;
    if (!isTooNew && isElsewhere) return null;
    candidates.pop();
    if (!isTooNew) return twin;
  }
  return null;
}

function speakerOf({ fields: { role, toolCallName } }: SnapshotPart): string {
  return textOf(role) ?? textOf(toolCallName) ?? '';
}

/** Key that equal parts share. Servers format arguments and trailing whitespace differently. */
function wordsOf(key: string, by: string, text: string): string {
  const args = key.startsWith('tool ') ? parseJson(text === '' ? '{}' : text) : null;
  return JSON.stringify([sizeOf(key, by, text), args ?? text.trim()]);
}

/** The cheap part of that key. */
function sizeOf(key: string, by: string, text: string): string {
  const kind = key.slice(0, key.indexOf(' '));
  return `${kind} ${by} ${kind === 'tool' ? '' : text.trim().length}`;
}
