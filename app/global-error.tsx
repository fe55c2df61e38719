'use client';

import './globals.css';

/** When even the layout failed. The server's own log has the cause. */
export default function GlobalError({ reset }: { reset: () => void }) {
  return (
    <html lang="en">
      <body>
        <main className="grid min-h-dvh place-items-center px-6">
          <div className="max-w-sm">
            <h1 className="font-medium text-lg">This page failed</h1>
            <p className="mt-1 text-ink-2">
              Interlude could not show it. Nothing that agents sent is lost. The cause is in the server’s log.
            </p>
            <button type="button" onClick={reset} className="mt-4 underline underline-offset-2">
              Try again
            </button>
          </div>
        </main>
      </body>
    </html>
  );
}
