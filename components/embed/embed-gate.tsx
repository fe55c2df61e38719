'use client';

import { type ReactNode, useEffect, useState } from 'react';
import { useSelected } from '@/components/live/use-folded';
import { EmbedFrame } from './embed-frame';
import { EmbedNotice } from './embed-notice';
import { MayActProvider } from '@/components/access/may-act';
import { LiveProvider, useLiveClient } from '@/components/live/live-provider';
import { followLinks } from './frame-links';

interface GateProps {
  /** Those whose pages may embed this server. */
  origins: readonly string[];
  /** By how much the server's clock is ahead. */
  offsetMs: number;
  children: ReactNode;
}

/** Shows what an embed is of once the page around it has given a token; until then, and where that may not be, words. In browsers only. */
export function EmbedGate({ origins, offsetMs, children }: GateProps) {
  const [frame] = useState(() => new EmbedFrame(origins, offsetMs));
  useEffect(() => frame.start(), [frame]);
  const phase = useSelected(frame, (one) => one.phase);
  if (phase.kind === 'refused') return <EmbedNotice title="Nothing can be shown here" why={phase.why} isFailure />;
  if (phase.kind === 'waiting') {
    return <EmbedNotice title={phase.words === null ? 'Connecting…' : 'Not connected yet'} why={phase.words} />;
  }
  const { limits, isSignedOut } = phase;
  return (
    <EmbedOpen frame={frame} mayAct={limits.mayAct} isSignedOut={isSignedOut}>
      {children}
    </EmbedOpen>
  );
}

/**
 * Tells how high this page would like to be, whenever that changes: as high as its content, where it scrolls in itself.
 *
 * @returns stop
 */
export function watchHeight(tell: (height: number) => void): () => void {
  let told = 0;
  let asked = 0;
  const look = () => {
    asked = 0;
    const height = contentHeight();
    if (height === told) return;
    told = height;
    tell(height);
  };
  const soon = () => {
    asked ||= requestAnimationFrame(look);
  };
  const sizes = new ResizeObserver(soon);
  const nodes = new MutationObserver(() => {
    const scroller = scrollerOf();
    for (const child of scroller?.children ?? []) sizes.observe(child);
    soon();
  });
  sizes.observe(document.body);
  nodes.observe(document.body, { childList: true, subtree: true });
  soon();
  return () => {
    cancelAnimationFrame(asked);
    sizes.disconnect();
    nodes.disconnect();
  };
}

function scrollerOf(): Element | null {
  return document.querySelector('[role="log"], nav .overflow-y-auto');
}

/** All but what scrolls, and what that holds: its own height would grow with the frame and never shrink. */
function contentHeight(): number {
  const scroller = scrollerOf();
  const { clientHeight } = document.documentElement;
  if (scroller === null) return Math.ceil(document.body.scrollHeight);
  const top = scroller.getBoundingClientRect().top - scroller.scrollTop;
  const bottoms = [...scroller.children].map((child) => child.getBoundingClientRect().bottom);
  const held = Math.max(0, ...bottoms) - top;
  return Math.ceil(clientHeight - scroller.clientHeight + held);
}

/** What an embed is of, once there is a token. */
function EmbedOpen(props: { frame: EmbedFrame; mayAct: boolean; isSignedOut: boolean; children: ReactNode }) {
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
