'use client';

import { type AttachmentRef, attachmentPath } from '@interlude/protocol/attachments';
import type { MessageResponse } from '@interlude/protocol/commands';
import type { Attachment } from '@interlude/protocol/field-schemas';
import { retryDelayMs } from '@interlude/protocol/sse';
import { useSyncExternalStore } from 'react';
import { apiFetch } from '@/components/live/api-fetch';
import { postJson, RequestError } from '@/components/live/fetch-json';
import { Store } from '@/components/live/store';
import { browserStorage } from '@/components/ui/browser-storage';
import { newId } from '@/components/ui/new-id';
import {
  attachmentsField,
  forgetOutgoing,
  type OutgoingMessage,
  outgoingName,
  readOutgoing,
  sessionsWithOutgoing,
  storeOutgoing,
} from './draft-store';

/** Queues of all sessions. They keep sending while the reader is on another page. */
class OutgoingQueues {
  readonly #queues = new Map<string, OutgoingQueue>();

  of(sessionId: string): OutgoingQueue {
    const known = this.#queues.get(sessionId);
    if (known !== undefined) return known;
    const queue = new OutgoingQueue({
      sessionId,
      // Null once the page has stopped.
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

  /** Another tab has sent or discarded the message. */
  removedElsewhere(key: string): void {
    const name = outgoingName(key);
    if (name !== null) this.#queues.get(name.sessionId)?.removedElsewhere(name.clientId);
  }
}

export const outgoingQueues = new OutgoingQueues();

if (typeof window !== 'undefined') {
  addEventListener('online', () => outgoingQueues.wakeAll());
  addEventListener('storage', ({ key, newValue }) => {
    if (key !== null && newValue === null) outgoingQueues.removedElsewhere(key);
  });
}

export type SendOutcome =
  | { kind: 'sent'; messageId: string }
  | { kind: 'unreachable'; reason: string }
  /** The author is no longer signed in. */
  | { kind: 'signed-out'; reason: string }
  | { kind: 'refused'; reason: string };

interface OutgoingQueueOptions {
  sessionId: string;
  /** Null if the browser can't store. */
  readonly storage: Storage | null;
  send: (message: OutgoingMessage) => Promise<SendOutcome>;
  newId: () => string;
  now: () => number;
}

const RETRY = { firstMs: 1_000, longestMs: 15_000 };

/**
 * A session's outgoing messages that the transcript does not show yet.
 *
 * Ordering: one message at a time, in the order of writing. A refused message does not block the next one.
 * Failure: a message is stored before it is sent, and kept until the server has acknowledged it. Without a response,
 * this page or the next one retries with the same `clientId`, and the server deduplicates. When the author is signed
 * out, their messages wait until they sign in again.
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

  /** The same array while unchanged. */
  get messages(): readonly OutgoingMessage[] {
    return this.#messages;
  }

  post(text: string, replyTo: string | null, attachments: readonly Attachment[] = []): void {
    const { newId, now } = this.#options;
    this.#add({
      clientId: newId(),
      text,
      replyTo,
      ...attachmentsField(attachments),
      at: now(),
      state: 'sending',
      messageId: null,
      reason: null,
    });
  }

  /** Sends a refused message again, as a new one. */
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

  /** Removes messages that the transcript shows, even if the server's response got lost. */
  discardShown(isShown: (message: OutgoingMessage) => boolean): void {
    for (const message of this.#messages.filter(isShown)) this.discard(message.clientId);
  }

  /** Removes a message that another tab has sent or discarded. */
  removedElsewhere(clientId: string): void {
    const message = this.#messages.find((one) => one.clientId === clientId);
    if (message !== undefined && message.state !== 'sending' && message.state !== 'sent') this.discard(clientId);
  }

  /** Retries now: the network is back, or the page has just loaded. */
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
    const next: OutgoingMessage =
      outcome.kind === 'sent'
        ? { ...head, state: 'sent', messageId: outcome.messageId, reason: null }
        : { ...head, state: outcome.kind === 'unreachable' ? 'retrying' : outcome.kind, reason: outcome.reason };
    if (next.state === 'sent') forgetOutgoing(storage, sessionId, next.clientId);
    else storeOutgoing(storage, sessionId, next);
    this.#put(this.#messages.map((message) => (message.clientId === head.clientId ? next : message)));
  }

  #put(messages: readonly OutgoingMessage[]): void {
    this.#messages = messages;
    this.changed();
  }
}

/** Client error statuses that are worth a retry. */
const TRANSIENT = [408, 421, 429];

/** One attempt to send. Only an error about the message itself is final. */
export async function sendMessage(sessionId: string, message: OutgoingMessage): Promise<SendOutcome> {
  const { text, clientId, replyTo, attachments } = message;
  try {
    const { messageId } = await postJson<MessageResponse>(`/sessions/${encodeURIComponent(sessionId)}/messages`, {
      text,
      clientId,
      ...(replyTo === null ? {} : { replyTo }),
      ...(attachments === undefined ? {} : { attachments: attachments.map(({ hash, name }) => ({ hash, name })) }),
    });
    return { kind: 'sent', messageId };
  } catch (error) {
    if (!(error instanceof RequestError)) return { kind: 'unreachable', reason: 'The server can’t be reached.' };
    // The message waits for its author, and is never sent on behalf of the next user who signs in.
    if (error.status === 401 || error.code === 'other_principal') return { kind: 'signed-out', reason: error.message };
    const isTransient = error.status >= 500 || TRANSIENT.includes(error.status);
    if (isTransient) return { kind: 'unreachable', reason: error.message };
    const removed = error.status === 400 ? await removedText(sessionId, attachments ?? []) : null;
    return { kind: 'refused', reason: removed ?? error.message };
  }
}

/** Names the attachments that the server has removed. The server's own message is meant for programs. */
async function removedText(sessionId: string, attachments: readonly AttachmentRef[]): Promise<string | null> {
  const stored = await Promise.all(attachments.map((attachment) => isStored(sessionId, attachment)));
  const names = attachments.flatMap(({ name }, index) => (stored[index] === false ? [name] : []));
  if (names.length === 0) return null;
  return `The server no longer has ${names.join(', ')}. Edit the message and attach the files again.`;
}

const NONE: readonly OutgoingMessage[] = [];
const never = () => () => {};
const isServer = typeof window === 'undefined';

export function useOutgoing(sessionId: string): {
  messages: readonly OutgoingMessage[];
  queue: OutgoingQueue | null;
} {
  const queue = isServer ? null : outgoingQueues.of(sessionId);
  const messages = useSyncExternalStore(
    queue?.subscribe ?? never,
    () => queue?.messages ?? NONE,
    () => NONE,
  );
  return { messages, queue };
}

/** Timeout of a check, which runs in the background. */
const WITHIN_MS = 30_000;

/**
 * Returns true if the server still has the attachment, without downloading it. The server removes attachments that no
 * message uses after a day.
 *
 * @returns null if the server is unreachable
 */
export async function isStored(sessionId: string, { hash }: AttachmentRef): Promise<boolean | null> {
  try {
    const { status, body } = await apiFetch(attachmentPath(hash, sessionId), {
      headers: { 'if-none-match': `"${hash}"` },
      signal: AbortSignal.timeout(WITHIN_MS),
    });
    await body?.cancel();
    if (status === 304 || status === 200) return true;
    return status === 404 ? false : null;
  } catch {
    return null;
  }
}
