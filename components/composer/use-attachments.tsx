'use client';

import { type AttachmentKind, IMAGE_TYPES, supportedAttachments } from '@interlude/protocol/attachments';
import { Paperclip } from 'lucide';
import {
  type ClipboardEvent,
  type DragEvent,
  useEffect,
  useEffectEvent,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react';
import { useRunnerStatus } from '@/components/live/refusals';
import { Icon } from '@/components/ui/icon';
import type { Draft } from './draft-store';
import { type Upload, uploadLists } from './upload-list';

const NONE_ACCEPTED = 'This agent doesn’t accept attachments';

/** Opens the file dialog. Disabled, with the reason as its tooltip, if the agent accepts no attachments. */
export function AttachButton(props: { accepts: readonly AttachmentKind[]; onAttach: (files: FileList) => void }) {
  const { accepts, onAttach } = props;
  const input = useRef<HTMLInputElement>(null);
  const isOffered = accepts.length > 0;
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        // No filter for files: the server detects the type, because browsers know few kinds of text.
        accept={accepts.includes('file') ? undefined : IMAGE_TYPES.join(',')}
        onChange={({ currentTarget }) => {
          if (currentTarget.files !== null) onAttach(currentTarget.files);
          // Lets the reader choose the same file again.
          currentTarget.value = '';
        }}
      />
      <button
        type="button"
        aria-label={accepts.includes('file') || !isOffered ? 'Attach files' : 'Attach images'}
        aria-disabled={!isOffered}
        title={isOffered ? WORDS[accepts.join()] : NONE_ACCEPTED}
        onClick={() => isOffered && input.current?.click()}
        className="-ml-1.5 grid size-7 shrink-0 place-items-center rounded text-ink-3 hover:text-ink aria-disabled:cursor-default aria-disabled:text-ink-3 aria-disabled:opacity-50"
      >
        <Icon of={Paperclip} size={15} strokeWidth={1.75} />
      </button>
    </>
  );
}

const WORDS: Record<string, string> = {
  'image,file': 'Attach images or files: choose, paste or drop them',
  image: 'Attach images: choose, paste or drop them',
  file: 'Attach files: choose, paste or drop them',
};

const NONE: readonly Upload[] = [];

/** Attachments of the draft, with props for the composer that attach dropped and pasted files. */
export function useAttachments(options: {
  sessionId: string;
  /** Reason the session accepts no more messages; null if it accepts them. */
  ended: string | null;
  /** Reads and changes the draft, which stores the uploaded attachments. */
  draftNow: () => Draft;
  change: (next: Partial<Draft>) => void;
  /** Sends the message that waited for its attachments. */
  send: () => void;
}) {
  const { sessionId, ended, draftNow, change, send } = options;
  const supported = supportedAttachments(useRunnerStatus());
  const accepts = ended === null ? supported : [];
  const list = uploadLists.of(sessionId);
  useEffect(() =>
    list.configure({
      accepts,
      onChange: (attachments) => change({ attachments: attachments.length === 0 ? undefined : attachments }),
      onReady: send,
    }),
  );
  const arrive = useEffectEvent(() => {
    const waiting = uploadLists.arrive(sessionId);
    if (waiting !== null) change({ text: waiting.text, replyTo: waiting.replyTo });
  });
  useEffect(() => {
    arrive();
    return () => uploadLists.leave(sessionId, draftNow());
  }, [sessionId, draftNow]);
  const uploads = useSyncExternalStore(
    list.subscribe,
    () => list.uploads,
    () => NONE,
  );
  const [dragged, setDragged] = useState<'accepted' | 'refused' | null>(null);
  return {
    accepts,
    list,
    uploads,
    /** True while files that the agent accepts are dragged over the composer. */
    isOver: dragged === 'accepted',
    /** Status of the uploads, or the reason dragged files are refused; null if neither applies. */
    status: dragged === 'refused' ? `${NONE_ACCEPTED}.` : uploads.length === 0 ? null : list.words,
    handlers: {
      onPaste(event: ClipboardEvent) {
        const { files, types } = event.clipboardData;
        if (files.length === 0 || accepts.length === 0 || isPictureOfText(types)) return;
        event.preventDefault();
        list.add(files);
      },
      onDragOver(event: DragEvent) {
        if (!hasFiles(event)) return;
        // Also for refused files, which the browser would open in place of this page.
        event.preventDefault();
        if (accepts.length === 0) event.dataTransfer.dropEffect = 'none';
        setDragged(accepts.length === 0 ? 'refused' : 'accepted');
      },
      onDragLeave(event: DragEvent) {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setDragged(null);
      },
      onDrop(event: DragEvent) {
        setDragged(null);
        if (!hasFiles(event)) return;
        event.preventDefault();
        if (accepts.length > 0) list.add(event.dataTransfer.files);
      },
    },
  };
}

const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer.types.includes('Files');

/**
 * True if a pasted image only depicts text that was copied from a table or a page. A copied file comes with only
 * its name as plain text.
 */
function isPictureOfText(types: readonly string[]): boolean {
  return types.includes('text/plain') && (types.includes('text/html') || types.includes('text/rtf'));
}
