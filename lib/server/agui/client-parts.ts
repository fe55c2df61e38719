import type { Kind } from '@interlude/protocol/lifecycle/grammar';
import { Entities } from '@interlude/protocol/lifecycle/grammar';

/** The things that become messages in the client's list. */
export type PartKind = 'text' | 'thought' | 'call';

/** Progress of a message, thought or call, in the client and in the log. */
export interface Part {
  /** Length of its text in the client, in UTF-16 code units. */
  has: number;
  /** Length of its text in the log so far: less than `has` while the log repeats what the client has. */
  told: number;
  /** The subagent that spoke first, null for the agent itself; left out until the part is written. */
  owner?: string | null;
  /** The speaker that streams it in chunks: no event ends those. */
  chunkedBy?: string | null;
}

/** Bounds per kind: beyond them the oldest open part is closed, and the oldest ended one is forgotten. */
const MOST = { mostOpen: 1_000, mostEnded: 5_000 };

/**
 * The parts that the client has, from the messages it sent and the events written to it. Compared by length, not by text,
 * because a text in the log only grows. To a client a call is open until its arguments end, and its result is another
 * message: the end of a call is therefore its `cut`, after which only a result changes it.
 */
export class ClientParts {
  readonly of: Readonly<Record<PartKind, Entities<PartKind, Part>>> = {
    text: new Entities<PartKind, Part>('text', MOST),
    thought: new Entities<PartKind, Part>('thought', MOST),
    call: new Entities<PartKind, Part>('call', MOST),
  };

  /**
   * @param told 0 if the log is read from the beginning of the part, else its length at the position read from
   * @param owner null if the client has it as the agent's own
   */
  know(kind: PartKind, id: string, has: number, told: number, owner?: null): void {
    this.of[kind].take(id, 'start', { has, told, owner });
    this.of[kind].take(id, 'cut');
  }

  knowResult(toolCallId: string): void {
    const calls = this.of.call;
    calls.take(toolCallId, 'start', calls.about(toolCallId) ?? { has: 0, told: 0 });
    calls.take(toolCallId, 'result');
  }

  isAnswered(toolCallId: string): boolean {
    return this.of.call.verdict(toolCallId, 'result') === 'repeats';
  }

  /** Whether a message of the client has this id, of whatever kind. */
  hasId(id: string): boolean {
    return Object.values(this.of).some((parts) => parts.about(id) !== undefined);
  }

  /** Open parts by kind, oldest first. */
  open(): { kind: PartKind; id: string; part: Part }[] {
    const kinds = ['text', 'thought', 'call'] as const;
    return kinds.flatMap((kind) => this.of[kind].entries().map(([id, part]) => ({ kind, id, part })));
  }
}

export function isOfPart<Said extends { kind: Kind | null }>(said: Said): said is Extract<Said, { kind: PartKind }> {
  return said.kind === 'text' || said.kind === 'thought' || said.kind === 'call';
}
