'use client';

import { attachmentPath, isImageType } from '@interlude/protocol/attachments';
import { API_ADDRESS } from '@interlude/protocol/version';
import { clsx } from 'clsx';
import { FileText, RotateCw, X } from 'lucide';
import { useSource } from '@/components/live/use-source';
import { formatBytes } from '@/components/ui/format-size';
import { Icon } from '@/components/ui/icon';
import { Name, Phrase } from '@/components/ui/name';
import { quoted } from '@/components/ui/verbatim';
import type { Upload, UploadList } from './upload-list';

export function AttachmentChips(props: {
  sessionId: string;
  uploads: readonly Upload[];
  list: UploadList;
  /** Called when the pressed button disappears, to move the focus. */
  onRemoved: () => void;
}) {
  const { sessionId, uploads, list, onRemoved } = props;
  return (
    <ul aria-label="Attached" className="flex flex-wrap gap-1.5 pb-1.5">
      {uploads.map((upload) => (
        <li
          key={upload.key}
          className={clsx(
            'flex min-w-0 max-w-full items-center gap-1.5 rounded border py-1 pr-1 pl-1 text-xs',
            upload.state.kind === 'failed' ? 'border-failed' : 'border-line',
          )}
        >
          <Picture upload={upload} sessionId={sessionId} />
          <span className="min-w-0">
            <span className="flex items-baseline gap-1.5">
              <span className="truncate sm:max-w-56">
                <bdi>
                  <Name text={upload.name} />
                </bdi>
              </span>
              <span className="tabular shrink-0 text-2xs text-ink-3">{formatBytes(upload.bytes)}</span>
            </span>
            <State upload={upload} />
          </span>
          {upload.state.kind === 'failed' && upload.state.canRetry && (
            <button
              type="button"
              aria-label={`Try again: ${quoted(upload.name)}`}
              title="Try again"
              onClick={() => {
                list.tryAgain(upload.key);
                onRemoved();
              }}
              className="hit shrink-0 p-1 text-ink-2 hover:text-ink"
            >
              <Icon of={RotateCw} size={13} />
            </button>
          )}
          <button
            type="button"
            aria-label={`Remove ${quoted(upload.name)}`}
            title="Remove"
            onClick={() => {
              list.remove(upload.key);
              onRemoved();
            }}
            className="hit shrink-0 p-1 text-ink-3 hover:text-ink"
          >
            <Icon of={X} size={13} />
          </button>
        </li>
      ))}
    </ul>
  );
}

function Picture({ upload, sessionId }: { upload: Upload; sessionId: string }) {
  const { preview, state, mediaType } = upload;
  const hash = state.kind === 'done' && isImageType(mediaType) ? state.attachment.hash : null;
  const source = useSource(hash === null ? undefined : `${API_ADDRESS}${attachmentPath(hash, sessionId)}`);
  const src = preview ?? source;
  if (src === undefined) return <Icon of={FileText} size={16} strokeWidth={1.5} className="mx-1 shrink-0 text-ink-3" />;
  return (
    // biome-ignore lint/performance/noImgElement: a blob of this page or an authenticated API response
    <img
      src={src}
      alt=""
      width={28}
      height={28}
      decoding="async"
      referrerPolicy="same-origin"
      className="size-7 shrink-0 rounded-sm object-cover"
    />
  );
}

function State({ upload: { state, name } }: { upload: Upload }) {
  if (state.kind === 'sending') {
    return (
      <progress
        aria-label={`Uploading ${quoted(name)}`}
        value={state.share}
        className="block h-1 w-full min-w-16 appearance-none overflow-hidden rounded-full [&::-moz-progress-bar]:bg-accent [&::-webkit-progress-bar]:bg-raised [&::-webkit-progress-value]:bg-accent"
      />
    );
  }
  if (state.kind === 'done') return null;
  return (
    <span role="alert" className="block text-2xs text-failed [overflow-wrap:anywhere]">
      <Phrase text={state.reason} />
    </span>
  );
}
