'use client';

import { type AttachmentKind, IMAGE_TYPES } from '@interlude/protocol/attachments';
import { Paperclip } from 'lucide';
import { useRef } from 'react';
import { Icon } from '@/components/ui/icon';

export const NOTHING_TAKEN = 'Nothing can be attached: this agent takes no images or files';

/** Opens the system's choice of files; where the agent takes none, it says so. */
export function AttachButton(props: { takes: readonly AttachmentKind[]; onAttach: (files: FileList) => void }) {
  const { takes, onAttach } = props;
  const input = useRef<HTMLInputElement>(null);
  const isOffered = takes.length > 0;
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        // What a file is, the server sees: browsers know few kinds of text.
        accept={takes.includes('file') ? undefined : IMAGE_TYPES.join(',')}
        onChange={({ currentTarget }) => {
          if (currentTarget.files !== null) onAttach(currentTarget.files);
          // The same file may be chosen again.
          currentTarget.value = '';
        }}
      />
      <button
        type="button"
        aria-label={takes.includes('file') || !isOffered ? 'Attach files' : 'Attach images'}
        aria-disabled={!isOffered}
        title={isOffered ? WORDS[takes.join()] : NOTHING_TAKEN}
        onClick={() => isOffered && input.current?.click()}
        className="hit -ml-1.5 grid size-7 shrink-0 place-items-center rounded text-ink-3 hover:text-ink aria-disabled:cursor-default aria-disabled:text-ink-3 aria-disabled:opacity-50"
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
