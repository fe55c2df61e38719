'use client';

import type { Attachment } from '@interlude/protocol/field-schemas';
import type { Position } from '@interlude/protocol/position';
import type { MessageItem, RequestItem, Task, TaskItem } from '@interlude/protocol/read-models';
import { createContext, type ReactNode, useContext } from 'react';

/** Parts of the transcript that the page provides: tasks, requests, delivery states. */
export interface TranscriptSlots {
  findTask(ref: { id: string; runId: string | null; position: Position | null }): Task | null;
  /** `failed, exit 3` */
  outcomeOf(task: Task): string;
  /** The summary, unless it only repeats the outcome. */
  tellingSummary(task: Task): string | null;
  anchorOf(task: Task): string;
  /** True if the task's card is in the loaded part. */
  hasCard(task: Task): boolean;
  renderTask(item: TaskItem, call: ReactNode): ReactNode;
  renderRequest(item: RequestItem): ReactNode;
  /** Delivery state of a message sent from Interlude. */
  renderDelivery(item: MessageItem): ReactNode;
  /** Marks a message that still waits for its reply. */
  renderObligation(item: MessageItem): ReactNode;
  /** The message's first words; null if it is not loaded. */
  quoteOf(messageId: string): string | null;
  /** URL of an attachment's bytes; null if unknown. */
  hrefOf(attachment: Attachment): string | null;
  /** URL of an anchor of the transcript, for other people. */
  linkTo(anchor: string): string;
  /** Starts a reply to this message; null if messages can't be sent. */
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
  renderObligation: () => null,
  quoteOf: () => null,
  hrefOf: () => null,
  linkTo: (anchor) => `#${anchor}`,
  replyTo: null,
});

export const TranscriptSlotsProvider = SlotsContext.Provider;

export function useTranscriptSlots(): TranscriptSlots {
  return useContext(SlotsContext);
}
