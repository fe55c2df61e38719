'use client';

import { CopyButton } from '@/components/ui/copy-button';
import { useHydrated } from '@/components/ui/now';

const waysAt = (origin: string): { what: string; why: string; command: string }[] => [
  {
    what: 'Run Claude Code',
    why: 'What you write here reaches the agent; what it does, in a turn and between turns, appears here.',
    command: 'npm run -s interlude -- runner claude --cwd ~/my-project',
  },
  {
    what: 'Follow your terminals',
    why: 'Hooks let Claude Code, run as you always run it, appear here too.',
    command: 'npm run -s interlude -- hooks install && npm run -s interlude -- runner hooks',
  },
  {
    what: 'Watch a demo fleet',
    why: 'Seven agents replay real work: background tasks end, and agents wake up by themselves. One answers you.',
    command: 'npm start -- --demo',
  },
  {
    what: 'Replay a recording',
    why: 'One recorded session of Claude Code, through the same path a live agent takes.',
    command: 'npm run -s interlude -- replay tests/fixtures/recordings/demo/test-run.jsonl',
  },
  {
    what: 'Connect any other agent',
    why: 'Anything that speaks HTTP can post its events; the README has the contract.',
    command: `curl --json @events.json -H "Authorization: Bearer $INTERLUDE_TOKEN" ${origin}/api/v1/events`,
  },
];

/** What to do when no session has ever come in. */
export function Welcome({ compact }: { compact: boolean }) {
  const origin = useHydrated() ? location.origin : 'http://127.0.0.1:4319';
  if (compact) return <p className="px-4 py-3 text-ink-3">No session has come in yet.</p>;
  return (
    <div className="mx-auto w-full max-w-xl px-4 py-[12vh]">
      <h2 className="font-medium text-xl tracking-tight">Nothing is running yet</h2>
      <p className="mt-1.5 text-ink-2 text-md">
        Sessions appear here by themselves as soon as an agent sends its first event. Five ways to see one:
      </p>
      <ol className="mt-8">
        {waysAt(origin).map(({ what, why, command }) => (
          <li key={what} className="border-line border-t py-4">
            <h3 className="font-medium">{what}</h3>
            <p className="text-ink-3">{why}</p>
            <p className="mt-2 flex items-start gap-3">
              <code className="min-w-0 flex-1 text-ink-2 text-xs [overflow-wrap:anywhere]">{command}</code>
              <CopyButton label="Copy command" text={() => command} />
            </p>
          </li>
        ))}
      </ol>
    </div>
  );
}
