import { Entities } from '@/lib/protocol/lifecycle/entities';
import type { Kind } from '@/lib/protocol/lifecycle/grammar';

/** The things that become messages in the client's list. */
export type PartKind = 'text' | 'thought' | 'call';

/** The share of a message, thought or call that the client has. */
export interface Part {
  /** In UTF-16 code units. */
  has: number;
  /** The log's progress in telling it: less than `has` while the log repeats what the client has. */
  told: number;
  /** The subagent that spoke first, null for the agent itself; left out until something of it is written. */
  owner?: string | null;
  /** The speaker of its chunks: no event says where they end. */
  chunkedBy?: string | null;
}

/** Most parts of a kind that are open at once, and most that are remembered once they have ended. */
const MOST = { mostOpen: 1_000, mostEnded: 5_000 };

/**
 * The parts that the client has: from the messages it sent, and from the events written to it. By length, not by text,
 * because a text in the log only grows. A call is open to a client until its arguments end; its result is a message of its
 * own.
 */
export class ClientParts {
  readonly of: Readonly<Record<PartKind, Entities<PartKind, Part>>> = {
    text: new Entities<PartKind, Part>('text', MOST),
    thought: new Entities<PartKind, Part>('thought', MOST),
    call: new Entities<PartKind, Part>('call', MOST),
  };

  /** @param told the log's progress where it is read on from here; 0 if it is read from the beginning of the part */
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

  /** The open parts, those of a kind together. */
  open(): { kind: PartKind; id: string; part: Part }[] {
    const kinds = ['text', 'thought', 'call'] as const;
    return kinds.flatMap((kind) => this.of[kind].entries().map(([id, part]) => ({ kind, id, part })));
  }
}

export function isOfPart<Said extends { kind: Kind | null }>(said: Said): said is Extract<Said, { kind: PartKind }> {
  return said.kind === 'text' || said.kind === 'thought' || said.kind === 'call';
}
