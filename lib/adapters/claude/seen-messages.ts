import { type Fields, textOf } from '@/lib/protocol/fields';
import { remember } from './remember';

/** Most uuids remembered: a message that comes again comes soon. */
const MAX_UUIDS = 10_000;

/** Every message of the SDK carries a uuid; one that was read before says nothing new. */
export class SeenMessages {
  readonly #uuids = new Map<string, true>();

  /** Whether the message was here before; from now on it was. A message without uuid never was. */
  has(message: Fields): boolean {
    const uuid = textOf(message.uuid);
    if (uuid === null) return false;
    const isKnown = this.#uuids.has(uuid);
    if (!isKnown) remember(this.#uuids, uuid, true, MAX_UUIDS);
    return isKnown;
  }
}
