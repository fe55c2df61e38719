'use client';

import { isImageType } from '@interlude/protocol/attachments';
import type { Attachment } from '@interlude/protocol/field-schemas';
import { FileText } from 'lucide';
import { useState } from 'react';
import { useSource } from '@/components/live/use-source';
import { bytesInWords } from '@/components/ui/bytes-in-words';
import { Icon } from '@/components/ui/icon';
import { Quoted } from '@/components/ui/name';
import { nameText, quoted } from '@/components/ui/verbatim';
import { useTranscriptSlots } from './transcript-slots';

/** What a message carries: images as they are, which open in full, and files to download. */
export function MessageAttachments({ attachments }: { attachments: readonly Attachment[] }) {
  return (
    <ul aria-label="Attachments" className="mt-1.5 flex flex-wrap gap-2">
      {attachments.map((attachment, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they never change, and the same may be there twice
        <li key={at} className="min-w-0 max-w-full">
          <One attachment={attachment} />
        </li>
      ))}
    </ul>
  );
}

function One({ attachment }: { attachment: Attachment }) {
  const { hrefOf } = useTranscriptSlots();
  const [isBroken, setBroken] = useState(false);
  const href = hrefOf(attachment) ?? undefined;
  const { name, mediaType, bytes } = attachment;
  const isImage = isImageType(mediaType) && href !== undefined && !isBroken;
  const source = useSource(isImage ? href : undefined);
  const size = bytesInWords(bytes);
  if (isImage) {
    return (
      <a
        href={href}
        target="_blank"
        rel="noopener"
        referrerPolicy="same-origin"
        title={`${nameText(name)}, ${size}`}
        className="block size-24 overflow-hidden rounded border border-line hover:border-ink-3"
      >
        {/* biome-ignore lint/performance/noImgElement: an answer of the API to whoever is signed in */}
        <img
          src={source}
          alt={quoted(name)}
          width={96}
          height={96}
          loading="lazy"
          decoding="async"
          referrerPolicy="same-origin"
          onError={() => setBroken(true)}
          className="size-full object-cover"
        />
      </a>
    );
  }
  return (
    <a
      href={href}
      download={nameText(name)}
      referrerPolicy="same-origin"
      className="flex h-8 max-w-full items-center gap-1.5 rounded border border-line px-2 text-ink-2 text-xs hover:border-ink-3 hover:text-ink"
    >
      <Icon of={FileText} size={14} strokeWidth={1.75} className="shrink-0" />
      <span className="truncate">
        <bdi>
          <Quoted text={name} />
        </bdi>
      </span>
      <span className="tabular shrink-0 text-ink-3">{size}</span>
    </a>
  );
}
