'use client';

import { clsx } from 'clsx';
import { RequestError } from '@/components/live/fetch-json';

/** A notice in place of the embed, with the reason and what to do. */
export function EmbedNotice(props: {
  title: string;
  why?: string | null;
  isFailure?: boolean;
  retry?: (() => void) | undefined;
}) {
  const { title, why = null, isFailure = false, retry } = props;
  return (
    <main className="grid min-h-dvh place-items-center px-6 py-4">
      <div role={isFailure ? 'alert' : 'status'} className="max-w-prose text-xs">
        <h1 className={clsx(why === null ? 'text-ink-3' : 'font-medium text-ink text-sm')}>{title}</h1>
        {why !== null && <p className="mt-1 text-pretty text-ink-2 [overflow-wrap:anywhere]">{why}</p>}
        {retry !== undefined && (
          <button
            type="button"
            onClick={retry}
            className="mt-3 h-8 rounded-md border border-line-strong px-3 text-ink hover:bg-raised"
          >
            Try again
          </button>
        )}
      </div>
    </main>
  );
}

/** Shown until a session has loaded, and after a failure. */
export function EmbedWait({ error, retry }: { error: Error | null; retry: () => void }) {
  if (error === null) return <EmbedNotice title="Loading the session…" />;
  const isMissing = error instanceof RequestError && error.status === 404;
  const why = isMissing ? 'The session doesn’t exist, or this frame’s token doesn’t cover it.' : error.message;
  return <EmbedNotice title="The session can’t be shown" why={why} isFailure retry={retry} />;
}
