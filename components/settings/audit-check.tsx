'use client';

import type { AuditCheck } from '@interlude/protocol/access';
import { ShieldCheck } from 'lucide';
import { useState } from 'react';
import { fetchJson } from '@/components/live/fetch-json';
import { CopyButton } from '@/components/ui/copy-button';
import { CalendarDay } from '@/components/ui/day';
import { Icon } from '@/components/ui/icon';
import { useAct } from './use-act';

/** Goes through the whole chain, and says what came of it. */
export function AuditCheckButton() {
  const [check, setCheck] = useState<AuditCheck | null>(null);
  const { isSending, failure, act } = useAct();
  return (
    <>
      <button
        type="button"
        aria-disabled={isSending}
        onClick={() => void act(async () => setCheck(await fetchJson<AuditCheck>('/audit/check')))}
        className="flex h-8 items-center gap-1.5 rounded-md border border-line-strong px-3 hover:bg-raised"
      >
        <Icon of={ShieldCheck} size={13} />
        {isSending ? 'Checking…' : 'Check the chain'}
      </button>
      <div role="status" className="basis-full text-xs">
        {failure !== null && <p className="text-failed">It could not be checked: {failure}</p>}
        {failure === null && check !== null && <Outcome check={check} />}
      </div>
    </>
  );
}

function Outcome({ check: { entries, head, brokenAt, removed } }: { check: AuditCheck }) {
  if (brokenAt !== null) {
    return (
      <p className="max-w-prose rounded-md bg-failed-soft px-3 py-2 text-failed">
        The chain breaks at entry {brokenAt.toLocaleString('en')}: it does not follow from the one before. That entry
        was changed, or one was taken out. The {entries.toLocaleString('en')} before it are as they were written.
      </p>
    );
  }
  if (entries === 0) return <p className="text-ink-2">There is no entry to check yet.</p>;
  const newest = ((removed?.upTo ?? 0) + entries).toLocaleString('en');
  return (
    <div className="max-w-prose rounded-md bg-sunken px-3 py-2 text-ink-2">
      <p>
        <span className="font-medium text-working">The chain is whole.</span>{' '}
        {entries === 1
          ? 'Its one entry is'
          : `Each of its ${entries.toLocaleString('en')} entries follows from the one before. The newest is`}{' '}
        number {newest}, with this hash; kept elsewhere, it shows later that nothing up to here was changed:
      </p>
      <p className="mt-1 flex items-start gap-3">
        <code className="min-w-0 flex-1 text-ink [overflow-wrap:anywhere]">{head}</code>
        <CopyButton label="Copy hash" text={() => head} className="mt-0.5 shrink-0" />
      </p>
      {removed?.upTo !== undefined && (
        <p className="mt-1">
          It begins with number {(removed.upTo + 1).toLocaleString('en')}: older entries were removed by their age, the
          last on <CalendarDay at={removed.at} />.
        </p>
      )}
    </div>
  );
}
