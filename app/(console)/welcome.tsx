'use client';

import { BASE_PATH } from '@interlude/protocol/base-path.mjs';
import { useHydrated } from '@/components/ui/clock';
import { CopyButton } from '@/components/ui/copy-button';
import type { CommandPlace } from '@/lib/server/access/command-place';
import { waysToBegin } from './ways-to-begin';

/** What to do when no session has ever come in. */
export function Welcome({ place }: { place: CommandPlace }) {
  const origin = useHydrated() ? location.origin + BASE_PATH : 'http://127.0.0.1:4319';
  return (
    <div className="mx-auto w-full max-w-xl px-4 py-[12vh]">
      <h2 className="font-medium text-xl tracking-tight">Nothing is running yet</h2>
      <p className="mt-1.5 text-ink-2 text-md">
        Sessions appear here by themselves as soon as an agent sends its first event. Ways to see one, in a terminal on
        this server’s machine, in Interlude’s folder
        {place.token === null && (
          <>
            {' '}
            and with <code>INTERLUDE_TOKEN</code> set to this server’s token
          </>
        )}
        :
      </p>
      <ol className="mt-8">
        {waysToBegin(origin, place).map(({ what, why, at, command }) => (
          <li key={what} className="border-line border-t py-4">
            <h3 className="font-medium">{what}</h3>
            <p className="text-ink-3">{why}</p>
            {at !== undefined && (
              <p className="truncate text-ink-3 text-xs" title={at}>
                Found: <span className="font-mono">{at}</span>
              </p>
            )}
            <p className="mt-2 flex items-start gap-3">
              <code className="min-w-0 flex-1 whitespace-pre-wrap text-ink-2 text-xs [overflow-wrap:anywhere]">
                {command}
              </code>
              <CopyButton label="Copy command" text={() => command} />
            </p>
          </li>
        ))}
      </ol>
    </div>
  );
}
