import type { Attachment } from '@interlude/protocol/field-schemas';
import { retryDelayMs } from '@interlude/protocol/sse';
import { Store } from '@/components/live/store';
import { carried, forgetOutgoing, type OutgoingMessage, readOutgoing, storeOutgoing } from './draft-store';

export type SendOutcome =
  | { kind: 'sent'; messageId: string }
  | { kind: 'unreachable'; reason: string }
  /** Its writer is not the one who is signed in now. */
  | { kind: 'signed-out'; reason: string }
  | { kind: 'refused'; reason: string };

export interface OutgoingQueueOptions {
  sessionId: string;
  /** Null if the browser keeps nothing. */
  readonly storage: Storage | null;
  send: (message: OutgoingMessage) => Promise<SendOutcome>;
  newId: () => string;
  now: () => number;
}

const RETRY = { firstMs: 1_000, longestMs: 15_000 };

/**
 * What a person wrote to one session and the transcript does not show yet.
 *
 * Ordering: one message at a time, in the order they were written; what is refused lets the next one pass.
 * Failure: a message is stored before it is sent and until it is known to be on the server's disk. Without an answer it
 * is sent again under the same clientId, by this page or by the next, and the server takes it once. When the sign-in of
 * its writer has ended, it waits for them to sign in again.
 */
export class OutgoingQueue extends Store {
  readonly #options: OutgoingQueueOptions;
  #messages: readonly OutgoingMessage[];
  #isSending = false;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(options: OutgoingQueueOptions) {
    super();
    this.#options = options;
    this.#messages = readOutgoing(options.storage, options.sessionId);
  }

  /** The same array until something changes. */
  get messages(): readonly OutgoingMessage[] {
    return this.#messages;
  }

  post(text: string, replyTo: string | null, attachments: readonly Attachment[] = []): void {
    const { newId, now } = this.#options;
    this.#add({
      clientId: newId(),
      text,
      replyTo,
      ...carried(attachments),
      at: now(),
      state: 'sending',
      messageId: null,
      reason: null,
    });
  }

  /** Sends what was refused once more, as a new message. */
  tryAgain(clientId: string): void {
    const message = this.#messages.find((one) => one.clientId === clientId && one.state === 'refused');
    if (message === undefined) return;
    this.discard(clientId);
    this.post(message.text, message.replyTo, message.attachments);
  }

  discard(clientId: string): void {
    forgetOutgoing(this.#options.storage, this.#options.sessionId, clientId);
    this.#put(this.#messages.filter((message) => message.clientId !== clientId));
  }

  /** The transcript shows it: the server has it, whether or not its answer arrived. */
  discardShown(isShown: (message: OutgoingMessage) => boolean): void {
    for (const message of this.#messages.filter(isShown)) this.discard(message.clientId);
  }

  /** Another page of this browser has dealt with it: sent it, or thrown it away. */
  forgotten(clientId: string): void {
    const message = this.#messages.find((one) => one.clientId === clientId);
    if (message !== undefined && message.state !== 'sending' && message.state !== 'sent') this.discard(clientId);
  }

  /** There is reason to hope: the network is back, or the page has just come. */
  wake(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    void this.#pump();
  }

  #add(message: OutgoingMessage): void {
    storeOutgoing(this.#options.storage, this.#options.sessionId, message);
    this.#put([...this.#messages, message]);
    this.wake();
  }

  async #pump(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      for (;;) {
        const head = this.#messages.find(({ state }) => state !== 'sent' && state !== 'refused');
        if (head === undefined) return;
        const outcome = await this.#options.send(head);
        if (outcome.kind !== 'unreachable') this.#failures = 0;
        if (!this.#messages.some(({ clientId }) => clientId === head.clientId)) continue;
        this.#apply(head, outcome);
        if (outcome.kind === 'signed-out') return;
        if (outcome.kind === 'unreachable') {
          this.#failures += 1;
          this.#timer ??= setTimeout(() => this.wake(), retryDelayMs(this.#failures, RETRY, 1));
          return;
        }
      }
    } finally {
      this.#isSending = false;
    }
  }

  #apply(head: OutgoingMessage, outcome: SendOutcome): void {
    const { storage, sessionId } = this.#options;
    const next = after(head, outcome);
    if (next.state === 'sent') forgetOutgoing(storage, sessionId, next.clientId);
    else storeOutgoing(storage, sessionId, next);
    this.#put(this.#messages.map((message) => (message.clientId === head.clientId ? next : message)));
  }

  #put(messages: readonly OutgoingMessage[]): void {
    this.#messages = messages;
    this.changed();
  }
}

function after(message: OutgoingMessage, outcome: SendOutcome): OutgoingMessage {
  switch (outcome.kind) {
    case 'sent':
      return { ...message, state: 'sent', messageId: outcome.messageId, reason: null };
    case 'unreachable':
      return { ...message, state: 'retrying', reason: outcome.reason };
    case 'signed-out':
      return { ...message, state: 'signed-out', reason: outcome.reason };
    case 'refused':
      return { ...message, state: 'refused', reason: outcome.reason };
  }
}
