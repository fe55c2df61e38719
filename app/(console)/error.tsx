'use client';

/** Replaces a page that failed to render. The server's log has the cause. */
export default function PageError({ error, reset }: { error: Error & { digest?: string }; reset: () => void }) {
  return (
    <main className="px-6 py-10">
      <h1 className="font-medium text-lg">This page failed</h1>
      <p className="mt-1 max-w-prose text-ink-2">
        No records were lost. Check the server’s log for the cause
        {error.digest === undefined ? '' : ` (${error.digest})`}.
      </p>
      <button type="button" onClick={reset} className="mt-4 underline underline-offset-2">
        Try again
      </button>
    </main>
  );
}
