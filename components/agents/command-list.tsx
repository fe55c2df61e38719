'use client';

import type { NamedCommand } from '@interlude/protocol/agent-limits';
import { clsx } from 'clsx';
import { ChevronRight } from 'lucide';
import { plural } from '@/components/ui/duration';
import { Icon } from '@/components/ui/icon';
import { Name, Words } from '@/components/ui/name';
import { useDisclosure } from '@/components/ui/unfold';

/** What people can have the agent do by its name, folded. */
export function CommandList({ commands }: { commands: readonly NamedCommand[] }) {
  const { open, id, button } = useDisclosure();
  return (
    <>
      <button type="button" {...button} className="-ml-0.5 flex items-center gap-1 text-ink-2 text-xs hover:text-ink">
        <Icon
          of={ChevronRight}
          size={12}
          aria-hidden="true"
          className={clsx('transition-transform', open && 'rotate-90')}
        />
        {plural(commands.length, 'command')}
      </button>
      {open && (
        <dl
          id={id}
          className="mt-1.5 grid grid-cols-[fit-content(40%)_minmax(0,1fr)] gap-x-6 gap-y-1 border-line border-l pl-4 text-xs"
        >
          {commands.map(({ name, description }) => (
            <div key={name} className="contents">
              <dt className="min-w-0 font-mono text-ink-2 [overflow-wrap:anywhere]">
                /<Name text={name} layout="tool" />
              </dt>
              <dd dir="auto" className="min-w-0 text-ink-3 [overflow-wrap:anywhere]">
                <Words text={description} />
              </dd>
            </div>
          ))}
        </dl>
      )}
    </>
  );
}
