import { addTo, parseJson, textOf } from '@interlude/protocol/fields';
import type { SnapshotPart } from '@interlude/protocol/projections/snapshot-parts';
import type { Pace } from '@/db/next-turn';

export type Stand = Pick<KnownPart, 'position' | 'turnId'>;

/** A text, thought or call that a session has shown. */
export interface KnownPart {
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
export type Twins = ReadonlyMap<string, KnownPart>;

/**
 * Finds the parts of a snapshot that are known under another id: some servers stream an answer under one id and list it
 * under another. A part with an unknown id repeats a known one of the same role with the same words, unless the snapshot
 * itself lists that one. Both lists are matched from their ends, in order.
 */
export async function twinsOf(
  parts: readonly SnapshotPart[],
  known: { get: (key: string) => KnownPart | undefined; all: () => Iterable<KnownPart> },
  pace: Pace,
): Promise<Twins> {
  const twins = new Map<string, KnownPart>();
  const unknown = parts.filter((part) => part.kind !== 'result' && known.get(keyOf(part)) === undefined);
  if (unknown.length === 0) return twins;
  const sizes = new Set(unknown.map((part) => sizeOf(keyOf(part), speakerOf(part), part.text)));
  const named = new Set(parts.flatMap((part) => [keyOf(part), known.get(keyOf(part))?.sameAs ?? '']));
  const alike = new Map<string, KnownPart[]>();
  const newest: { person: Stand | null; agent: Stand | null } = { person: null, agent: null };
  await pace.each(known.all(), (one) => {
    const { key, turnId, text, sameAs, by } = one;
    if (turnId === null || turnId.startsWith('task:') || sameAs !== undefined) return;
    const who = by === 'user' ? 'person' : 'agent';
    if (one.position > (newest[who]?.position ?? 0)) newest[who] = one;
    if (text === null) return;
    if (!named.has(key) && sizes.has(sizeOf(key, by, text))) addTo(alike, wordsOf(key, by, text), one);
  });
  for (const candidates of alike.values()) candidates.sort((a, b) => a.position - b.position);
  // A match stands behind the last known part before it, and before the next known or matched part.
  let previous: Stand = { position: 0, turnId: null };
  const lowest = new Map<SnapshotPart, Stand>();
  // Of a part with two ids, that of the first, if it is loaded.
  const standOf = (part: SnapshotPart) => {
    const one = part.kind === 'result' ? undefined : known.get(keyOf(part));
    return one?.sameAs === undefined ? one : known.get(one.sameAs);
  };
  await pace.each(parts, (part) => {
    lowest.set(part, previous);
    previous = standOf(part) ?? previous;
  });
  let next: Stand | null = null;
  await pace.each(parts.toReversed(), (part) => {
    next = standOf(part) ?? next;
    if (known.get(keyOf(part)) !== undefined || part.kind === 'result') return;
    const by = speakerOf(part);
    const found = takeTwin(alike.get(wordsOf(keyOf(part), by, part.text)) ?? [], {
      lower: lowest.get(part) ?? previous,
      next,
      // A person's message stands in the turn of its answer, and the last part in the newest turn.
      turnId: by === 'user' ? (next ?? newest.person)?.turnId : next === null ? newest.agent?.turnId : null,
    });
    if (found === null) return;
    twins.set(keyOf(part), found);
    next = found;
  });
  return twins;
}

/** Key of a part, which a call shares with its result. */
export function keyOf({ kind, id }: SnapshotPart): string {
  return `${kind === 'call' || kind === 'result' ? 'tool' : kind} ${id}`;
}

/**
 * Removes and returns the newest candidate that fits; drops those that are too new.
 *
 * @param candidates in the order of the log
 * @param turnId the turn it must belong to; candidates outside of turns fit, too
 */
function takeTwin(
  candidates: KnownPart[],
  { lower, next, turnId }: { lower: Stand; next: Stand | null; turnId: string | null | undefined },
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
