import { Link } from './link';

/** Shown on a page whose content comes from agents, while there are none. */
export function NoAgents({ children }: { children: string }) {
  return (
    <div className="max-w-prose py-6">
      <h2 className="font-medium text-md">No agents yet</h2>
      <p className="mt-1 text-ink-2">{children}</p>
      <Link
        href="/"
        className="mt-4 inline-flex min-h-8 pointer-coarse:min-h-11 items-center rounded-md bg-ink px-4 font-medium text-ground hover:bg-ink-2"
      >
        Connect an agent
      </Link>
    </div>
  );
}
