import { Link } from './link';

/** Shown on a page whose content comes from agents, while there are none. */
export function NoAgents({ children }: { children: string }) {
  return (
    <div className="empty-page mx-auto max-w-2xl pt-[8vh] pb-6">
      <h2 className="font-medium text-xl tracking-tight">No agents yet</h2>
      <p className="mt-1.5 text-ink-2 text-md">{children}</p>
      <Link
        href="/"
        className="mt-4 inline-flex min-h-8 pointer-coarse:min-h-11 items-center rounded-md bg-ink px-4 font-medium text-ground hover:bg-ink-2"
      >
        Connect an agent
      </Link>
    </div>
  );
}
