'use client';

import { type ReactNode, useEffect, useState, useSyncExternalStore } from 'react';
import { MayActProvider } from '@/components/access/may-act';
import { LiveProvider, useLiveClient } from '@/components/live/live-provider';
import { watchHeight } from './content-height';
import { EmbedFrame, type EmbedPhase } from './embed-frame';
import { followLinks } from './frame-links';

interface GateProps {
  /** Those whose pages may embed this server. */
  origins: readonly string[];
  /** When the server rendered this, by its clock. */
  renderedAt: number;
  children: ReactNode;
}

const never = () => () => {};
const WAITING: EmbedPhase = { kind: 'waiting', words: null };

/** Shows what an embed is of once the page around it has given a token; until then, and where that may not be, words. */
export function EmbedGate({ origins, renderedAt, children }: GateProps) {
  const [frame, setFrame] = useState<EmbedFrame | null>(null);
  useEffect(() => {
    const made = new EmbedFrame(origins, renderedAt - Date.now());
    setFrame(made);
    return made.start();
  }, [origins, renderedAt]);
  const phase = useSyncExternalStore(
    frame?.subscribe ?? never,
    () => frame?.phase ?? WAITING,
    () => WAITING,
  );
  if (frame === null || phase.kind === 'waiting') return <Words text={phase.kind === 'waiting' ? phase.words : null} />;
  if (phase.kind === 'refused') return <Words text={phase.why} />;
  return (
    <LiveProvider>
      <MayActProvider may={phase.limits.mayAct} why={null} answersHere={false}>
        <Ties frame={frame} />
        <div className="flex h-dvh flex-col">
          {phase.isSignedOut && <SignedOut onAgain={() => frame.askAgain()} />}
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
    frame.onToken = () => live().wake();
    return followLinks((to, path) => frame.tell({ type: 'navigate', to, path }));
  }, [frame, live]);
  useEffect(() => {
    if (frame.wantsHeight) return watchHeight((height) => frame.tell({ type: 'height', height }));
  }, [frame]);
  return null;
}

function Words({ text }: { text: string | null }) {
  return (
    <main className="grid min-h-dvh place-items-center px-6 py-4">
      <p role="status" className="max-w-prose text-ink-3 text-xs">
        {text ?? 'Connecting…'}
      </p>
    </main>
  );
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
