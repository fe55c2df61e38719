'use client';

import type { SessionList } from '@interlude/protocol/read-models';
import { clsx } from 'clsx';
import { useParams, usePathname } from 'next/navigation';
import type { ReactNode } from 'react';
import { SignedOutNotice } from '@/components/live/signed-out-notice';
import { useInitialData } from '@/components/live/use-fleet';
import { CommandSettingProvider } from '@/components/sessions/command-setting';
import { SessionNav } from '@/components/sessions/session-nav';
import { CodeOnDemand, OnDemand, usePreload } from '@/components/ui/on-demand';
import { transcriptCode } from './sessions/[sessionId]/transcript-code';
import type { WelcomePlace } from './welcome';
import { BackgroundWhenIdle } from './when-idle-part';

const previewCode = new CodeOnDemand(async () => (await import('./session-preview')).SessionPreview);
const welcomeCode = new CodeOnDemand(async () => (await import('./welcome')).Welcome);

/**
 * The frame around every page. The list of sessions is one element that stays mounted: the start page's content, and
 * below the pages of the sidebar on other pages, where phones hide it.
 */
export function Shell(props: {
  sessions: SessionList;
  place: WelcomePlace;
  /** The header of the start page. */
  header: ReactNode;
  sidebar: ReactNode;
  afterList: ReactNode;
  bottomBar: ReactNode;
  children: ReactNode;
}) {
  const { sessions, place, header, sidebar, afterList, bottomBar, children } = props;
  const path = usePathname();
  const { sessionId } = useParams<{ sessionId?: string }>();
  const home = path === '/';
  usePreload(transcriptCode);
  useInitialData((fleet) => fleet.putSessions(sessions));

  return (
    <div className="shell">
      <a
        href={home ? '#sessions' : '#content'}
        className="sr-only rounded bg-ink px-3 py-1.5 text-ground focus:not-sr-only focus:absolute focus:top-1.5 focus:left-1.5 focus:z-50 focus:px-3 focus:py-1.5"
      >
        Skip to content
      </a>
      <div className="[grid-area:notice]">
        <SignedOutNotice />
        <BackgroundWhenIdle />
      </div>
      {sidebar}
      <div
        id="sessions"
        role={home ? 'main' : undefined}
        tabIndex={-1}
        className={clsx(
          'min-h-0 min-w-0 flex-col focus-quiet',
          home ? 'with-preview flex [grid-area:page]' : 'z-10 hidden pr-px [grid-area:list] lg:not-icons:flex',
        )}
      >
        {home && header}
        <SessionNav
          currentId={sessionId === undefined ? null : decodeURIComponent(sessionId)}
          keysEverywhere={home}
          preview={home ? previewCode : undefined}
          empty={
            home ? (
              <OnDemand code={welcomeCode} name="The introduction" props={{ place }} />
            ) : (
              <p className="px-4 py-3 text-ink-3">No sessions yet.</p>
            )
          }
        />
        {afterList}
      </div>
      <div
        id="content"
        tabIndex={-1}
        className={clsx('min-h-0 min-w-0 focus-quiet [grid-area:page]', home && 'hidden')}
      >
        <CommandSettingProvider setting={place.setting}>{children}</CommandSettingProvider>
      </div>
      {bottomBar}
    </div>
  );
}
