'use client';

import type { RetentionRules, Storage } from '@interlude/protocol/storage';
import { FactTable } from './fact-table';
import { inMebibytes, type KeptRule, keptRules } from './database-size';
import { Section } from './fact-table';
import { Share } from './database-size';
import { useStorage } from './database-size';

const WIDTHS = '@3xl:grid-cols-[minmax(0,2fr)_minmax(0,4fr)_minmax(0,3.4fr)_80px]';

/** How long what has happened is kept, and which setting says so. @param initial null while sizes are looked up */
export function WhatIsKept({ rules, initial }: { rules: RetentionRules; initial: Storage | null }) {
  const { storage } = useStorage(initial);
  return (
    <Section
      title="What is kept"
      about={
        <>
          The oldest goes first, and the transcript says so. What is open stays, however old it is: a turn or task that
          runs, a request, a reply that is owed. The server’s environment sets the limits;{' '}
          <code className="text-ink-2">docs/database.md</code> has the details.
        </>
      }
    >
      {rules.maxBytes !== null && storage !== null && <Fullness storage={storage} maxBytes={rules.maxBytes} />}
      <FactTable<KeptRule>
        label="What is kept"
        rows={keptRules(rules)}
        widths={WIDTHS}
        columns={[
          { name: 'What', cell: ({ name }) => name },
          { name: 'Which', className: '@max-3xl:block!', cell: ({ about }) => about },
          {
            name: 'Set by',
            before: 'set by',
            cell: ({ setting }) => <code className="text-2xs [overflow-wrap:anywhere]">{setting}</code>,
          },
          { name: 'Kept', className: 'tabular text-right', cell: ({ kept }) => kept },
        ]}
      />
    </Section>
  );
}

/** How much of the room that is allowed is taken. */
function Fullness({ storage: { bytes, freeBytes, parts }, maxBytes }: { storage: Storage; maxBytes: number }) {
  // logs have a limit of their own; what is searched by is nearly all theirs
  const logs = parts.filter(({ name }) => name === 'logs' || name === 'search');
  const used = bytes - freeBytes - logs.reduce((sum, part) => sum + part.bytes, 0);
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-1 pb-2 text-ink-2">
      <p>
        <span className="font-medium text-ink">{inMebibytes(used)}</span> of {inMebibytes(maxBytes)} in use
      </p>
      <div className="min-w-48 max-w-80 flex-1">
        <Share share={used / maxBytes} />
      </div>
    </div>
  );
}
