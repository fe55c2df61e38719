'use client';

import { readAttachments } from '@interlude/protocol/attachments';
import type { Attachment } from '@interlude/protocol/field-schemas';
import { type Fields, fieldsOf, parseJson } from '@interlude/protocol/fields';
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { browserStorage, keysOf, storageKey } from '@/components/ui/browser-storage';

/**
 * What a person has begun to write, and what they wrote that has not reached the server, kept by the browser for them
 * alone.
 *
 * Every message has a key of its own: two tabs that write at once don't overwrite each other.
 */
export interface Draft {
  text: string;
  replyTo: string | null;
  /** What the server has of it already; left out if that is nothing. */
  attachments?: readonly Attachment[] | undefined;
}

export const EMPTY_DRAFT: Draft = { text: '', replyTo: null };

/**
 * `sending`: no answer yet. `retrying`: no answer came, it is sent again by itself. `signed-out`: it is sent again once
 * its writer has signed in. `sent`: the server has it, the transcript will show it. `refused`: it will never be taken
 * like this, and `reason` says why.
 */
export interface OutgoingMessage {
  clientId: string;
  text: string;
  replyTo: string | null;
  /** Left out if it carries nothing. */
  attachments?: readonly Attachment[];
  /** When it was written, epoch milliseconds. */
  at: number;
  state: 'sending' | 'retrying' | 'signed-out' | 'sent' | 'refused';
  messageId: string | null;
  reason: string | null;
}

const draftKey = (sessionId: string) => storageKey(`draft:${encodeURIComponent(sessionId)}`);
const outgoingKey = (sessionId: string, clientId: string) =>
  storageKey(`outgoing:${encodeURIComponent(sessionId)}:${encodeURIComponent(clientId)}`);

export function readDraft(storage: Storage | null, sessionId: string): Draft {
  const stored = fieldsAt(storage, draftKey(sessionId));
  return {
    text: typeof stored.text === 'string' ? stored.text : '',
    replyTo: typeof stored.replyTo === 'string' ? stored.replyTo : null,
    ...attachmentsField(stored.attachments),
  };
}

export function storeDraft(storage: Storage | null, sessionId: string, draft: Draft): void {
  const { text, replyTo, attachments = [] } = draft;
  const isEmpty = text === '' && replyTo === null && attachments.length === 0;
  if (isEmpty) storage?.removeItem(draftKey(sessionId));
  else keep(storage, draftKey(sessionId), draft);
}

/** What earlier pages could not send, in the order it was written. */
export function readOutgoing(storage: Storage | null, sessionId: string): OutgoingMessage[] {
  const messages: OutgoingMessage[] = [];
  for (const key of keysOf(storage)) {
    const name = outgoingName(key);
    if (name?.sessionId !== sessionId) continue;
    const { text, replyTo, attachments, at, refused } = fieldsAt(storage, key);
    if (typeof text !== 'string' || typeof at !== 'number') continue;
    messages.push({
      clientId: name.clientId,
      text,
      replyTo: typeof replyTo === 'string' ? replyTo : null,
      ...attachmentsField(attachments),
      at,
      state: typeof refused === 'string' ? 'refused' : 'retrying',
      messageId: null,
      reason: typeof refused === 'string' ? refused : null,
    });
  }
  return messages.sort((a, b) => a.at - b.at);
}

export function storeOutgoing(storage: Storage | null, sessionId: string, message: OutgoingMessage): void {
  const { clientId, text, replyTo, attachments, at, state, reason } = message;
  keep(storage, outgoingKey(sessionId, clientId), {
    text,
    replyTo,
    ...(attachments === undefined ? {} : { attachments }),
    at,
    ...(state === 'refused' && { refused: reason }),
  });
}

export function forgetOutgoing(storage: Storage | null, sessionId: string, clientId: string): void {
  storage?.removeItem(outgoingKey(sessionId, clientId));
}

/** The sessions for which something waits to be sent. */
export function sessionsWithOutgoing(storage: Storage | null): string[] {
  const names = keysOf(storage).flatMap((key) => outgoingName(key)?.sessionId ?? []);
  return [...new Set(names)];
}

/** @returns null when the key is not that of a message of this page's person */
export function outgoingName(key: string): { sessionId: string; clientId: string } | null {
  const start = storageKey('outgoing:');
  if (!key.startsWith(start)) return null;
  const [sessionId, clientId] = key.slice(start.length).split(':');
  if (sessionId === undefined || clientId === undefined) return null;
  return { sessionId: decodeURIComponent(sessionId), clientId: decodeURIComponent(clientId) };
}

/** @param list as it may stand in the store */
export function attachmentsField(list: unknown): { attachments?: readonly Attachment[] } {
  const attachments = readAttachments(list);
  return attachments.length === 0 ? {} : { attachments };
}

/** A full store must not keep anybody from sending. */
function keep(storage: Storage | null, key: string, value: object): void {
  try {
    storage?.setItem(key, JSON.stringify(value));
  } catch {
    // what could not be kept is lost with the page, and nothing else is
  }
}

function fieldsAt(storage: Storage | null, key: string): Fields {
  return fieldsOf(parseJson(storage?.getItem(key) ?? ''));
}

/** What is being written to a session, kept until it is sent. */
export function useDraft(sessionId: string, field: RefObject<HTMLTextAreaElement | null>) {
  const [draft, setDraft] = useState(EMPTY_DRAFT);
  const newest = useRef(draft);
  const change = useCallback(
    (next: Partial<Draft>) => {
      newest.current = { ...newest.current, ...next };
      storeDraft(browserStorage(), sessionId, newest.current);
      setDraft(newest.current);
    },
    [sessionId],
  );
  useEffect(() => {
    const stored = readDraft(browserStorage(), sessionId);
    // Somebody may have begun to type before this ran.
    const typed = field.current?.value ?? '';
    newest.current = typed === '' ? stored : { ...stored, text: typed };
    setDraft(newest.current);
  }, [sessionId, field]);
  /** Also between two renders. */
  const draftNow = useCallback(() => newest.current, []);
  return { draft, draftNow, change };
}
