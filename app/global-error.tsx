'use client';

import './globals.css';

/** For errors of the root layout. The server's log has the cause. */
export default function GlobalError({ reset }: { reset: () => void }) {
  return (
    <html lang="en">
      <body className="p-6">
        <h1>This page failed. The cause is in the server’s log.</h1>
        <button type="button" onClick={reset} className="underline">
          Try again
        </button>
      </body>
    </html>
  );
}
