'use client';

import { isImageType } from '@interlude/protocol/attachments';
import type { Attachment } from '@interlude/protocol/field-schemas';
import type { MessageItem } from '@interlude/protocol/read-models';
import { FileText, Reply } from 'lucide';
import { memo, useState } from 'react';
import { useSource } from '@/components/live/use-source';
import { CopyButton } from '@/components/ui/copy-button';
import { formatBytes } from '@/components/ui/format-size';
import { Glyph } from '@/components/ui/glyph';
import { Icon } from '@/components/ui/icon';
import { useLiveness } from '@/components/ui/liveness';
import { Markdown } from '@/components/ui/markdown/markdown';
import { Quoted, Words } from '@/components/ui/name';
import { LongText } from '@/components/ui/prose';
import { nameText, quoted } from '@/components/ui/verbatim';
import { messageAnchor, ReplyLink } from './reply-link';
import { useTranscriptSlots } from './transcript-slots';

/** Characters shown of a user's message before the reader asks for more. */
const MAX_CHARACTERS = 5_000;

interface MessageViewProps {
  item: MessageItem;
  queued: boolean;
  /** Ids of the answered messages, if their place doesn't show it. */
  answers: string;
}

/** A message. A user's text is shown as typed, an agent's as Markdown. */
export const MessageView = memo(function MessageView({ item, queued, answers }: MessageViewProps) {
  const slots = useTranscriptSlots();
  if (item.role === 'assistant') return <Answer item={item} answers={answers} />;
  return (
    <div
      id={messageAnchor(item.id)}
      tabIndex={-1}
      className="group/message my-2 flex items-start gap-2 rounded-md bg-raised px-3 py-2 focus-quiet first:mt-0"
    >
      <div className="min-w-0 flex-1">
        <ReplyLink answers={answers} />
        <span className={item.name === null ? 'sr-only' : 'block text-2xs text-ink-3'}>
          {item.name === null && (item.role === 'user' ? 'User:' : 'System:')}
          {item.name !== null && <Sender name={item.name} />}
        </span>
        <LongText text={item.text} max={MAX_CHARACTERS} className="text-md" />
        {isFromTerminal(item) && (
          <p className="text-2xs text-ink-3" title="Not sent from Interlude: reported by the agent">
            from the terminal
          </p>
        )}
        {item.attachments !== undefined && <MessageAttachments attachments={item.attachments} />}
        {item.delivery !== null && slots.renderDelivery(item)}
        {slots.renderObligation(item)}
        {queued && item.delivery === null && (
          <p className="mt-1 flex items-center gap-1.5 text-2xs text-waiting">
            <Glyph name="waiting" />
            Queued: no turn has answered this message yet
          </p>
        )}
      </div>
      <CopyButton
        label="Copy message"
        text={() => item.text}
        className="mt-1 pointer-coarse:opacity-100 opacity-0 focus-visible:opacity-100 group-hover/message:opacity-100"
      />
    </div>
  );
});

/** Messages sent from Interlude have a delivery state. */
function isFromTerminal({ role, delivery }: MessageItem): boolean {
  return role === 'user' && delivery === null;
}

function Answer({ item, answers }: { item: MessageItem; answers: string }) {
  const { replyTo } = useTranscriptSlots();
  const { stopped, silence } = useLiveness();
  const grows = item.streaming && stopped === null && silence === null;
  if (item.text === '' && !item.streaming) return null;
  return (
    <div id={messageAnchor(item.id)} tabIndex={-1} className="group/message relative my-2 focus-quiet first:mt-0">
      <ReplyLink answers={answers} />
      {item.name !== null && (
        <p className="text-2xs text-ink-3">
          <Sender name={item.name} />
        </p>
      )}
      <Markdown text={item.text} streaming={item.streaming} className={grows ? CARET : undefined} />
      {replyTo !== null && !item.streaming && (
        // in the margin, so that it covers no text
        <button
          type="button"
          aria-label="Reply to this"
          title="Reply to this"
          onClick={() => replyTo(item.id)}
          className="hit absolute top-1 -right-3.5 sm:-right-4 text-ink-3 pointer-coarse:opacity-100 opacity-0 hover:text-ink focus-visible:opacity-100 group-hover/message:opacity-100"
        >
          <Icon of={Reply} size={13} strokeWidth={1.75} />
        </button>
      )}
    </div>
  );
}

function Sender({ name }: { name: string }) {
  return (
    <bdi>
      <Words text={name} />
    </bdi>
  );
}

/** A caret after the last word of a streaming message. */
const CARET =
  "[&>:last-child]:after:ml-0.5 [&>:last-child]:after:inline-block [&>:last-child]:after:h-[1em] [&>:last-child]:after:w-[2px] [&>:last-child]:after:translate-y-[2px] [&>:last-child]:after:bg-ink-3 [&>:last-child]:after:animate-caret stale:[&>:last-child]:after:opacity-0 [&>:last-child]:after:content-['']";

/** The files of a message: images, which open in full, and downloads. */
function MessageAttachments({ attachments }: { attachments: readonly Attachment[] }) {
  return (
    <ul aria-label="Attachments" className="mt-1.5 flex flex-wrap gap-2">
      {attachments.map((attachment, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: attachments may be equal and never change
        <li key={index} className="min-w-0 max-w-full">
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
  const size = formatBytes(bytes);
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
        {/* biome-ignore lint/performance/noImgElement: an authenticated API response */}
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
