import { type Fields, textOf } from './fields';

/** Most uuids remembered: a message that comes again comes soon. */
const MAX_UUIDS = 10_000;

/** Every message of the SDK carries a uuid; one that was read before says nothing new. */
export class SeenMessages {
  readonly #uuids = new Set<string>();

  /** Whether the message was here before; from now on it was. A message without uuid never was. */
  has(message: Fields): boolean {
    const uuid = textOf(message.uuid);
    if (uuid === null) return false;
    if (this.#uuids.has(uuid)) return true;
    this.#uuids.add(uuid);
    if (this.#uuids.size > MAX_UUIDS) this.#uuids.delete(this.#uuids.values().next().value as string);
    return false;
  }
}
