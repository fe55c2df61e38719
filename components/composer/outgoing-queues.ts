import { browserStorage } from '@/components/ui/browser-storage';
import { newId } from '@/components/ui/new-id';
import { outgoingName, sessionsWithOutgoing } from './draft-store';
import { OutgoingQueue } from './outgoing-queue';
import { sendMessage } from './send-message';

/** The queues of every session: what was written goes on being sent while another page is looked at. */
class OutgoingQueues {
  readonly #queues = new Map<string, OutgoingQueue>();

  of(sessionId: string): OutgoingQueue {
    const known = this.#queues.get(sessionId);
    if (known !== undefined) return known;
    const queue = new OutgoingQueue({
      sessionId,
      // Null from the moment the page leaves.
      get storage() {
        return browserStorage();
      },
      send: (message) => sendMessage(sessionId, message),
      newId,
      now: () => Date.now(),
    });
    this.#queues.set(sessionId, queue);
    return queue;
  }

  wakeAll(): void {
    for (const sessionId of sessionsWithOutgoing(browserStorage())) this.of(sessionId);
    for (const queue of this.#queues.values()) queue.wake();
  }

  forgotten(key: string): void {
    const name = outgoingName(key);
    if (name !== null) this.#queues.get(name.sessionId)?.forgotten(name.clientId);
  }
}

/** Those of this browser's visit. */
export const outgoingQueues = new OutgoingQueues();
