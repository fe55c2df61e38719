'use client';

import { clsx } from 'clsx';
import { type KeyboardEvent, type ReactNode, useCallback, useEffect, useId, useState } from 'react';
import { flushSync } from 'react-dom';
import { isAnchor } from '@/components/transcript/server-markup';
import { useHydrated } from '@/components/ui/clock';
import { OVERLAY } from '@/components/ui/in-view';
import { addressAnchor, addressWith } from '@/components/ui/jump';

/** The views of a session, in order. Each has a panel in the page's table of panels. */
export const TABS = { transcript: 'Transcript', tasks: 'Tasks', log: 'Log', details: 'Details' } as const;
export type TabId = keyof typeof TABS;

/** Reads `?tab=`; anything else leads to the transcript. */
function tabOf(value: string | null): TabId {
  return value !== null && Object.hasOwn(TABS, value) ? (value as TabId) : 'transcript';
}

/** Links to a turn, task, message or request lead to the transcript. */
function tabInAddress(): TabId {
  return isAnchor(addressAnchor()) ? 'transcript' : tabOf(new URLSearchParams(location.search).get('tab'));
}

export interface SessionTab {
  id: string;
  tab: TabId;
  /** Shows a tab and sets the URL. */
  select: (tab: TabId, how?: 'push' | 'replace') => void;
  /** Shows the transcript immediately, for a jump that sets the URL itself. */
  showTranscript: () => void;
}

/**
 * The tab shown, which follows the URL.
 *
 * @param initial `?tab=` of the URL
 * @param inAddress false in embeds, whose URL belongs to the embedding page
 */
export function useSessionTab(initial: string, inAddress: boolean): SessionTab {
  const id = useId();
  /** Null until the tab changes. */
  const [chosen, setTab] = useState<TabId | null>(null);
  const isKnown = useHydrated() && inAddress;
  const tab = chosen ?? (isKnown ? tabInAddress() : tabOf(initial));
  useEffect(() => {
    if (!inAddress) return;
    // Before the transcript follows the same URL: it can't focus anything while it is covered.
    const follow = () => flushSync(() => setTab(tabInAddress()));
    addEventListener('popstate', follow, { capture: true });
    addEventListener('hashchange', follow, { capture: true });
    return () => {
      removeEventListener('popstate', follow, { capture: true });
      removeEventListener('hashchange', follow, { capture: true });
    };
  }, [inAddress]);
  const select = useCallback(
    (next: TabId, how: 'push' | 'replace' = 'push') => {
      flushSync(() => setTab(next));
      if (!inAddress || tabInAddress() === next) return;
      const url = addressWith(location.href, '');
      if (next !== 'transcript') url.searchParams.set('tab', next);
      history[`${how}State`](null, '', url);
    },
    [inAddress],
  );
  const showTranscript = useCallback(() => flushSync(() => setTab('transcript')), []);
  return { id, tab, select, showTranscript };
}

const STEPS: Record<string, (at: number, count: number) => number> = {
  ArrowRight: (at, count) => (at + 1) % count,
  ArrowLeft: (at, count) => (at + count - 1) % count,
  Home: () => 0,
  End: (_, count) => count - 1,
};

/** The row of tabs. The arrow keys move between them. */
export function SessionTabs({
  tabs,
  of,
  counts,
}: {
  tabs: SessionTab;
  of: readonly TabId[];
  counts: Partial<Record<TabId, number>>;
}) {
  const { id, tab, select } = tabs;
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const next = STEPS[event.key]?.(of.indexOf(tab), of.length);
    if (next === undefined || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    select(of[next] as TabId, 'replace');
    event.currentTarget.querySelectorAll<HTMLElement>('[role="tab"]')[next]?.focus();
  };
  return (
    <div role="tablist" aria-label="Session" onKeyDown={onKeyDown} className="-mx-1 flex gap-3 sm:gap-4">
      {of.map((one) => (
        <button
          key={one}
          type="button"
          role="tab"
          id={`${id}-${one}`}
          aria-selected={one === tab}
          aria-controls={one === tab ? `${id}-panel` : undefined}
          tabIndex={one === tab ? 0 : -1}
          onClick={() => select(one)}
          className={clsx(
            '-mb-px flex h-8 items-center justify-center gap-1.5 border-b-2 px-1 text-xs pointer-coarse:h-11 -outline-offset-2',
            one === tab ? 'border-ink font-medium text-ink' : 'border-transparent text-ink-3 hover:text-ink',
          )}
        >
          {TABS[one]}
          {counts[one] !== undefined && (
            <span className="tabular font-normal text-2xs text-ink-3">{counts[one].toLocaleString('en')}</span>
          )}
        </button>
      ))}
    </div>
  );
}

/**
 * The content of a tab. The transcript stays laid out below the others, so that it keeps its place and its unfolded
 * parts.
 */
export function TabPanel({ tabs, of, children }: { tabs: SessionTab; of: TabId; children: ReactNode }) {
  const { id, tab } = tabs;
  const isShown = tab === of;
  if (!isShown && of !== 'transcript') return null;
  return (
    <div
      role="tabpanel"
      id={isShown ? `${id}-panel` : undefined}
      aria-labelledby={`${id}-${of}`}
      inert={!isShown}
      {...(of === 'transcript' ? {} : OVERLAY)}
      className={clsx(
        'flex min-h-0 min-w-0 flex-col',
        of === 'transcript' ? 'flex-1' : 'absolute inset-0 z-20 bg-ground',
      )}
    >
      {children}
    </div>
  );
}
