'use client';

import type { SessionList } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { useParams, usePathname, useRouter } from 'next/navigation';
import type { ReactNode } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { OutgoingWake } from '@/components/composer/outgoing-wake';
import { SignedOutNotice } from '@/components/live/signed-out-notice';
import { useInitialData } from '@/components/live/use-fleet';
import { CommandSettingProvider } from '@/components/sessions/command-setting';
import { SessionNav } from '@/components/sessions/session-nav';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { useShortcuts } from '@/components/ui/shortcuts/use-shortcuts';
import { transcriptCode } from './sessions/[sessionId]/transcript-code';
import { TopBar } from './top-bar';
import type { WelcomePlace } from './welcome';

const welcomeCode = new CodeOnDemand(async () => (await import('./welcome')).Welcome);

/**
 * The frame around every page. The list of sessions is one element that stays mounted: the start page's content, and a
 * sidebar on other pages, where phones hide it.
 */
export function Shell(props: { sessions: SessionList; place: WelcomePlace; links: ReactNode; children: ReactNode }) {
  const { sessions, place, links, children } = props;
  const mayAct = useMayAct();
  const path = usePathname();
  const { sessionId } = useParams<{ sessionId?: string }>();
  const home = path === '/';
  usePreload(transcriptCode);
  useInitialData((fleet) => fleet.putSessions(sessions));
  const router = useRouter();
  // Esc returns to the sessions, unless a field or dialog handles it.
  useShortcuts({ 'transcript.leave': home ? null : () => router.push('/') });

  return (
    <div className="flex h-dvh flex-col">
      <a
        href={home ? '#sessions' : '#content'}
        className="sr-only rounded bg-ink px-3 py-1.5 text-ground focus:not-sr-only focus:absolute focus:top-1.5 focus:left-1.5 focus:z-50 focus:px-3 focus:py-1.5"
      >
        Skip to content
      </a>
      <SignedOutNotice />
      {mayAct && <OutgoingWake />}
      <div className="flex min-h-0 flex-1">
        <div
          id="sessions"
          role={home ? 'main' : undefined}
          tabIndex={-1}
          className={clsx(
            'min-h-0 flex-col outline-none',
            home ? 'flex min-w-0 flex-1' : 'hidden w-[300px] shrink-0 border-r bg-sunken lg:flex',
          )}
        >
          <TopBar home={home} links={links} />
          <SessionNav
            currentId={sessionId === undefined ? null : decodeURIComponent(sessionId)}
            keysEverywhere={home}
            empty={
              home ? (
                <OnDemand code={welcomeCode} name="The introduction" props={{ place }} />
              ) : (
                <p className="px-4 py-3 text-ink-3">Nothing is running yet.</p>
              )
            }
          />
        </div>
        <div id="content" tabIndex={-1} className={clsx('min-h-0 min-w-0 flex-1 outline-none', home && 'hidden')}>
          <CommandSettingProvider setting={place.setting}>{children}</CommandSettingProvider>
        </div>
      </div>
    </div>
  );
}
