'use client';

import { readAttachments } from '@interlude/protocol/attachments';
import type { Attachment } from '@interlude/protocol/field-schemas';
import { type Fields, fieldsOf, parseJson } from '@interlude/protocol/fields';
import { type RefObject, useCallback, useEffect, useRef, useState } from 'react';
import { browserStorage, keysOf, storageKey } from '@/components/ui/browser-storage';

/**
 * A user's draft. The browser stores drafts and unsent messages under that user's keys. Each message has its own key,
 * so that tabs don't overwrite each other's messages.
 */
export interface Draft {
  text: string;
  replyTo: string | null;
  /** Uploaded attachments; omitted if there are none. */
  attachments?: readonly Attachment[] | undefined;
}

export const EMPTY_DRAFT: Draft = { text: '', replyTo: null };

/**
 * An unsent message, or one that the transcript does not show yet. `sending`: waiting for the response. `retrying`: the
 * server was unreachable, next attempt scheduled. `signed-out`: waiting for its author to sign in. `sent`: stored by the
 * server. `refused`: rejected for `reason`; a retry would fail, too.
 */
export interface OutgoingMessage {
  clientId: string;
  text: string;
  replyTo: string | null;
  /** Omitted if there are none. */
  attachments?: readonly Attachment[];
  /** Time of writing, epoch milliseconds. */
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

/** Messages that earlier pages could not send, oldest first. */
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

/** Sessions with unsent messages. */
export function sessionsWithOutgoing(storage: Storage | null): string[] {
  const names = keysOf(storage).flatMap((key) => outgoingName(key)?.sessionId ?? []);
  return [...new Set(names)];
}

/** Parses the key of a message; null for other keys and other users' messages. */
export function outgoingName(key: string): { sessionId: string; clientId: string } | null {
  const start = storageKey('outgoing:');
  if (!key.startsWith(start)) return null;
  const [sessionId, clientId] = key.slice(start.length).split(':');
  if (sessionId === undefined || clientId === undefined) return null;
  return { sessionId: decodeURIComponent(sessionId), clientId: decodeURIComponent(clientId) };
}

/** @param list unvalidated, from storage */
export function attachmentsField(list: unknown): { attachments?: readonly Attachment[] } {
  const attachments = readAttachments(list);
  return attachments.length === 0 ? {} : { attachments };
}

/** Ignores full storage: sending must still work. */
function keep(storage: Storage | null, key: string, value: object): void {
  try {
    storage?.setItem(key, JSON.stringify(value));
  } catch {
    // The entry is lost when the page closes.
  }
}

function fieldsAt(storage: Storage | null, key: string): Fields {
  return fieldsOf(parseJson(storage?.getItem(key) ?? ''));
}

/** The session's draft, stored in the browser until it is sent. */
export function useDraft(sessionId: string, field: RefObject<HTMLTextAreaElement | null>) {
  const [draft, setDraft] = useState(EMPTY_DRAFT);
  const latest = useRef(draft);
  const change = useCallback(
    (next: Partial<Draft>) => {
      latest.current = { ...latest.current, ...next };
      storeDraft(browserStorage(), sessionId, latest.current);
      setDraft(latest.current);
    },
    [sessionId],
  );
  useEffect(() => {
    const stored = readDraft(browserStorage(), sessionId);
    // The reader may have typed before hydration.
    const typed = field.current?.value ?? '';
    latest.current = typed === '' ? stored : { ...stored, text: typed };
    setDraft(latest.current);
  }, [sessionId, field]);
  /** The latest draft, even between renders. */
  const draftNow = useCallback(() => latest.current, []);
  return { draft, draftNow, change };
}
