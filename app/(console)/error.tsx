'use client';

/** A page that failed while the rest stands. */
export default function PageError({ error, reset }: { error: Error & { digest?: string }; reset: () => void }) {
  return (
    <main className="px-6 py-10">
      <h1 className="font-medium text-lg">This page failed</h1>
      <p className="mt-1 max-w-prose text-ink-2">
        Interlude could not show it. Nothing that agents sent is lost. The cause is in the server’s log
        {error.digest === undefined ? '' : `, under ${error.digest}`}.
      </p>
      <button type="button" onClick={reset} className="mt-4 underline underline-offset-2">
        Try again
      </button>
    </main>
  );
}
