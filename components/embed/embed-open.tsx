'use client';

import { type ReactNode, useEffect } from 'react';
import { MayActProvider } from '@/components/access/may-act';
import { LiveProvider, useLiveClient } from '@/components/live/live-provider';
import { watchHeight } from './content-height';
import type { EmbedFrame } from './embed-frame';
import { followLinks } from './frame-links';

/** What an embed is of, once there is a token. */
export function EmbedOpen(props: { frame: EmbedFrame; mayAct: boolean; isSignedOut: boolean; children: ReactNode }) {
  const { frame, mayAct, isSignedOut, children } = props;
  return (
    <LiveProvider>
      <MayActProvider may={mayAct} why={null} answersHere={false}>
        <Ties frame={frame} />
        <div className="flex h-dvh flex-col">
          {isSignedOut && <SignedOut onAgain={() => frame.askAgain()} />}
          <div className="min-h-0 flex-1">{children}</div>
        </div>
      </MayActProvider>
    </LiveProvider>
  );
}

/** What ties what is shown to the page around it. */
function Ties({ frame }: { frame: EmbedFrame }): null {
  const live = useLiveClient();
  useEffect(() => {
    frame.whenTaken(() => live().wake());
    return followLinks((to, path) => frame.tell({ type: 'navigate', to, path }));
  }, [frame, live]);
  useEffect(() => {
    if (frame.wantsHeight) return watchHeight((height) => frame.tell({ type: 'height', height }));
  }, [frame]);
  return null;
}

/** Said once, above everything, when the server takes the token no more and no other has come. */
function SignedOut({ onAgain }: { onAgain: () => void }) {
  return (
    <p role="alert" className="flex flex-wrap items-baseline gap-x-3 bg-failed-soft px-4 py-2 text-failed text-xs">
      The page around this one has given no new token, so nothing here is updated any more. Sign in there again, or
      reload it.
      <button type="button" onClick={onAgain} className="underline">
        Try again
      </button>
    </p>
  );
}
