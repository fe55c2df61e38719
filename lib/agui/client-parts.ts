import type { PartKind } from './strict-event';

/** A message, thought or call, as far as the client has it. */
export interface Part {
  readonly kind: PartKind;
  readonly id: string;
  readonly isOpen: boolean;
  /** How much of its text the client has, in UTF-16 code units. */
  has: number;
  /** How far the log has come in telling it: less than `has` while it tells again what the client has. */
  told: number;
  /** Told in chunks, by the subagent of this id or by the agent itself: no event says where it ends. */
  chunkedBy?: string | null;
}

/** How many parts are surely remembered once they have ended; what is told of older ones again may be shown again. */
const REMEMBERED = 5_000;

/**
 * What the client has by now: of its own, from the messages it sent, and from what was written to it. By length, not by
 * text, because a text in the log only grows.
 */
export class ClientParts {
  /** Two generations: what nobody asked for while one filled up is forgotten with it. */
  #young = new Map<string, Part>();
  #old = new Map<string, Part>();
  readonly #open = new Set<Part>();
  #results = new Set<string>();
  #oldResults = new Set<string>();

  /** @param told how far a log has come in telling it that goes on from here; 0 if it is told from its beginning */
  know(kind: PartKind, id: string, has: number, told: number): Part {
    const part: Part = { kind, id, isOpen: false, has, told };
    this.#young.set(keyOf(kind, id), part);
    if (this.#young.size > REMEMBERED + this.#open.size) this.#age();
    return part;
  }

  find(kind: PartKind, id: string): Part | undefined {
    const key = keyOf(kind, id);
    return this.#young.get(key) ?? this.#old.get(key);
  }

  open(): Part[] {
    return [...this.#open];
  }

  get openCount(): number {
    return this.#open.size;
  }

  get oldestOpen(): Part | null {
    for (const part of this.#open) return part;
    return null;
  }

  setOpen(part: Part, isOpen: boolean): void {
    Object.assign(part, { isOpen });
    if (isOpen) this.#open.add(part);
    else this.#open.delete(part);
  }

  knowResult(toolCallId: string): void {
    this.#results.add(toolCallId);
    if (this.#results.size <= REMEMBERED) return;
    this.#oldResults = this.#results;
    this.#results = new Set();
  }

  hasResult(toolCallId: string): boolean {
    return this.#results.has(toolCallId) || this.#oldResults.has(toolCallId);
  }

  /** Whether a message of the client has this id, of whatever kind. */
  hasId(id: string): boolean {
    return (['text', 'reasoning', 'tool'] as const).some((kind) => this.find(kind, id) !== undefined);
  }

  /** What is open is never forgotten. */
  #age(): void {
    this.#old = this.#young;
    this.#young = new Map([...this.#open].map((part) => [keyOf(part.kind, part.id), part]));
  }
}

function keyOf(kind: PartKind, id: string): string {
  return `${kind}:${id}`;
}
