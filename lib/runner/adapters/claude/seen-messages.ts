import { type Fields, textOf } from '@interlude/protocol/fields';
import { remember } from '../remember';

/** Most uuids remembered: a message that is repeated is repeated soon. */
const MAX_UUIDS = 10_000;

/** Recognises repeated messages: every message of the SDK carries a uuid. */
export class SeenMessages {
  readonly #uuids = new Map<string, true>();

  /** Whether the message was seen before; remembers it. A message without a uuid always counts as new. */
  has(message: Fields): boolean {
    const uuid = textOf(message.uuid);
    if (uuid === null) return false;
    const isKnown = this.#uuids.has(uuid);
    if (!isKnown) remember(this.#uuids, uuid, true, MAX_UUIDS);
    return isKnown;
  }
}
