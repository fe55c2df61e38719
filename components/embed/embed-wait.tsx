'use client';

import { RequestError } from '@/components/live/fetch-json';

/** In the place of what an embed is of until it has been read, and where it can't be. */
export function EmbedWait(props: { what: 'session' | 'log'; error: Error | null; retry: () => void }) {
  const { what, error, retry } = props;
  if (error === null) {
    return (
      <p role="status" className="px-4 py-3 text-ink-3 text-xs">
        Loading the {what}…
      </p>
    );
  }
  const isMissing = error instanceof RequestError && error.status === 404;
  return (
    <p role="alert" className="flex flex-wrap items-baseline gap-x-3 px-4 py-3 text-failed text-xs">
      {isMissing ? `There is no such ${what}, or the token of this frame is not for it.` : error.message}
      <button type="button" onClick={retry} className="underline">
        Try again
      </button>
    </p>
  );
}
