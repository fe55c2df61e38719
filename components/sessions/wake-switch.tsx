'use client';

import type { WakeRule, WakeRuleAnswer } from '@interlude/protocol/commands';
import type { SessionSummary } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { useState } from 'react';
import { putJson } from '@/components/live/fetch-json';

/** Whether the session's agent is woken by itself whenever a background command ends, of which nobody tells it. */
export function WakeSwitch({ session }: { session: Pick<SessionSummary, 'id' | 'wakeRule'> }) {
  const { id, wakeRule } = session;
  /** What was asked here, until the session's row says what has become of it. */
  const [asked, setAsked] = useState<{ when: WakeRule; before: WakeRule | null } | null>(null);
  const [error, setError] = useState<string | null>(null);
  if (asked !== null && asked.before !== wakeRule) setAsked(null);
  const isOn = (asked?.when ?? wakeRule) === 'command-ended';
  const set = async (when: WakeRule) => {
    setAsked({ when, before: wakeRule });
    setError(null);
    try {
      await putJson<WakeRuleAnswer>(`/sessions/${encodeURIComponent(id)}/wake-rule`, { when });
    } catch (failure) {
      setAsked(null);
      setError((failure as Error).message);
    }
  };
  return (
    <div className="border-line border-t px-3 pt-2 pb-1.5 text-xs">
      <button
        type="button"
        role="switch"
        aria-checked={isOn}
        onClick={() => void set(isOn ? 'never' : 'command-ended')}
        className="flex w-full items-center gap-2.5 text-left hover:text-ink"
      >
        <span
          aria-hidden="true"
          className={clsx(
            'flex h-4 w-7 shrink-0 items-center rounded-full border px-[2px] transition-colors',
            isOn ? 'justify-end border-ink bg-ink' : 'border-line-strong',
          )}
        >
          <span className={clsx('size-2.5 rounded-full', isOn ? 'bg-ground' : 'bg-ink-3')} />
        </span>
        Wake it when a background command ends
      </button>
      <p className="mt-1 pl-[38px] text-2xs text-ink-3">
        This agent is not told when one does. Interlude then begins a turn with the result.
      </p>
      {error !== null && (
        <p role="alert" className="mt-1 pl-[38px] text-failed">
          {error}
        </p>
      )}
    </div>
  );
}
