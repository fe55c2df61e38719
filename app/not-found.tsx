import { withBasePath } from '@interlude/protocol/base-path.mjs';

export default function NotFound() {
  return (
    <main className="grid min-h-dvh place-items-center px-6">
      <div className="max-w-sm">
        <h1 className="font-medium text-lg">Nothing here</h1>
        <p className="mt-1 text-ink-2">
          There is no page, session or agent at this address. Check the link, or start the agent’s runner.
        </p>
        {/* Not a Link, because every page would load its code. */}
        <a href={withBasePath('/')} className="mt-4 inline-block underline underline-offset-2">
          All sessions
        </a>
      </div>
    </main>
  );
}
