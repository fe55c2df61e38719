'use client';

import './globals.css';

/** For errors of the root layout. The server's log has the cause. */
export default function GlobalError({ reset }: { reset: () => void }) {
  return (
    <html lang="en">
      <body className="p-6">
        <h1>This page failed. Check the server’s log for the cause.</h1>
        <button type="button" onClick={reset} className="underline">
          Try again
        </button>
      </body>
    </html>
  );
}
