'use client';

import type { Attachment } from '@interlude/protocol/field-schemas';
import type { Position } from '@interlude/protocol/position';
import type { MessageItem, RequestItem, Task, TaskItem } from '@interlude/protocol/read-models';
import { createContext, type ReactNode, useContext } from 'react';

/**
 * What the page gives the transcript of the things it shows but does not know: tasks, requests, the way of messages.
 */
export interface TranscriptSlots {
  findTask(ref: { id: string; runId: string | null; position: Position | null }): Task | null;
  /** How a task stands, in words: `failed, exit 3`. */
  outcomeOf(task: Task): string;
  /** Its summary, unless that says no more than its outcome does. */
  tellingSummary(task: Task): string | null;
  /** The anchor of a task's card. */
  anchorOf(task: Task): string;
  /** Whether the card of this task is in the loaded part. */
  hasCard(task: Task): boolean;
  renderTask(item: TaskItem, call: ReactNode): ReactNode;
  renderRequest(item: RequestItem): ReactNode;
  /** How far a message has come that was sent from here. */
  renderDelivery(item: MessageItem): ReactNode;
  /** That somebody still waits for the reply to it. */
  renderOwed(item: MessageItem): ReactNode;
  /** The beginning of a message, null if it is not loaded. */
  quoteOf(messageId: string): string | null;
  /** Where the bytes of an attachment are; null if nobody can tell. */
  hrefOf(attachment: Attachment): string | null;
  /** Begins a message that answers this one; null if nobody can be written to. */
  replyTo: ((messageId: string) => void) | null;
}

const SlotsContext = createContext<TranscriptSlots>({
  findTask: () => null,
  outcomeOf: () => '',
  tellingSummary: () => null,
  anchorOf: () => '',
  hasCard: () => false,
  renderTask: () => null,
  renderRequest: () => null,
  renderDelivery: () => null,
  renderOwed: () => null,
  quoteOf: () => null,
  hrefOf: () => null,
  replyTo: null,
});

export const TranscriptSlotsProvider = SlotsContext.Provider;

export function useTranscriptSlots(): TranscriptSlots {
  return useContext(SlotsContext);
}
