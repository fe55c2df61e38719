'use client';

import { type ClipboardEvent, type DragEvent, useEffect, useMemo, useState, useSyncExternalStore } from 'react';
import { useRunnerStatus } from '@/components/live/refusals';
import { type Attachment, type AttachmentKind, takesAttachments } from '@/lib/protocol/attachments';
import { browserStorage, readDraft } from './draft-store';
import { uploadAttachment } from './upload-attachment';
import { type Upload, UploadList } from './upload-list';

const NONE: readonly Upload[] = [];

/** What is attached to the message that is being written, and the ways to attach. */
export interface Attaching {
  takes: readonly AttachmentKind[];
  list: UploadList;
  uploads: readonly Upload[];
  /** Something is held over the composer that it takes. */
  isOver: boolean;
  /** For the composer: what is dropped on it, or pasted into it, is attached. */
  places: {
    onPaste(event: ClipboardEvent): void;
    onDragOver(event: DragEvent): void;
    onDragLeave(event: DragEvent): void;
    onDrop(event: DragEvent): void;
  };
}

/**
 * @param keep stores what the server has with the draft
 * @param send sends the message that waited for it
 */
export function useAttaching(
  sessionId: string,
  keep: (attachments: readonly Attachment[]) => void,
  send: (list: UploadList) => void,
): Attaching {
  const takes = takesAttachments(useRunnerStatus());
  const list = useMemo(
    () =>
      new UploadList({
        upload: (file, onProgress, signal) => uploadAttachment(sessionId, file, onProgress, signal),
        addresses: URL,
      }),
    [sessionId],
  );
  useEffect(() => list.usedFor({ takes, onChange: keep, onReady: () => send(list) }));
  useEffect(() => {
    list.restore(readDraft(browserStorage(), sessionId).attachments ?? []);
    return () => list.clear();
  }, [list, sessionId]);
  const uploads = useSyncExternalStore(
    list.subscribe,
    () => list.uploads,
    () => NONE,
  );
  const [isOver, setOver] = useState(false);
  const isTaken = ({ types }: DataTransfer) => takes.length > 0 && types.includes('Files');
  return {
    takes,
    list,
    uploads,
    isOver,
    places: {
      onPaste(event) {
        const { files, types } = event.clipboardData;
        // What is copied from a table or a page comes as text and as a picture of it: the text is meant.
        if (files.length === 0 || takes.length === 0 || types.includes('text/plain')) return;
        event.preventDefault();
        list.add(files);
      },
      onDragOver(event) {
        if (!isTaken(event.dataTransfer)) return;
        event.preventDefault();
        setOver(true);
      },
      onDragLeave(event) {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
      },
      onDrop(event) {
        setOver(false);
        if (!isTaken(event.dataTransfer)) return;
        event.preventDefault();
        list.add(event.dataTransfer.files);
      },
    },
  };
}
