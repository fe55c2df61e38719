'use client';

import { type ReactNode, useEffect, useState } from 'react';
import { MayActProvider } from '@/components/access/may-act';
import { LiveProvider, useLiveClient } from '@/components/live/live-provider';
import { useSelected } from '@/components/live/use-folded';
import { EmbedFrame } from './embed-frame';
import { EmbedNotice } from './embed-notice';
import { followLinks } from './frame-links';

interface GateProps {
  /** Origins allowed to embed this server. */
  origins: readonly string[];
  /** Milliseconds by which the server's clock is ahead. */
  offsetMs: number;
  children: ReactNode;
}

/** Shows the embed once it has a token, and a notice before that or on refusal. Browser only. */
export function EmbedGate({ origins, offsetMs, children }: GateProps) {
  const [frame] = useState(() => new EmbedFrame(origins, offsetMs));
  useEffect(() => frame.start(), [frame]);
  const phase = useSelected(frame, (one) => one.phase);
  if (phase.kind === 'refused') return <EmbedNotice title="This embed can’t be shown" why={phase.why} isFailure />;
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
 * Reports the height of the content, including what an inner scroller hides, whenever it changes.
 *
 * @returns a function that stops it
 */
function watchHeight(report: (height: number) => void): () => void {
  let reported = 0;
  let frame = 0;
  const measure = () => {
    frame = 0;
    const height = contentHeight();
    if (height === reported) return;
    reported = height;
    report(height);
  };
  const schedule = () => {
    frame ||= requestAnimationFrame(measure);
  };
  const sizes = new ResizeObserver(schedule);
  const nodes = new MutationObserver(() => {
    const scroller = scrollerOf();
    for (const child of scroller?.children ?? []) sizes.observe(child);
    schedule();
  });
  sizes.observe(document.body);
  nodes.observe(document.body, { childList: true, subtree: true });
  schedule();
  return () => {
    cancelAnimationFrame(frame);
    sizes.disconnect();
    nodes.disconnect();
  };
}

function scrollerOf(): Element | null {
  return document.querySelector('[role="log"], nav .overflow-y-auto');
}

/** Height around the scroller plus its content. The scroller's own height would never shrink with the frame. */
function contentHeight(): number {
  const scroller = scrollerOf();
  const { clientHeight } = document.documentElement;
  if (scroller === null) return Math.ceil(document.body.scrollHeight);
  const top = scroller.getBoundingClientRect().top - scroller.scrollTop;
  const bottoms = [...scroller.children].map((child) => child.getBoundingClientRect().bottom);
  const content = Math.max(0, ...bottoms) - top;
  return Math.ceil(clientHeight - scroller.clientHeight + content);
}

/** The embed once it has a token. */
function EmbedOpen(props: { frame: EmbedFrame; mayAct: boolean; isSignedOut: boolean; children: ReactNode }) {
  const { frame, mayAct, isSignedOut, children } = props;
  return (
    <LiveProvider>
      <MayActProvider may={mayAct} why={null} answersHere={false}>
        <ParentLink frame={frame} />
        <div className="flex h-dvh flex-col">
          {isSignedOut && <SignedOut onAgain={() => frame.askAgain()} />}
          <div className="min-h-0 flex-1">{children}</div>
        </div>
      </MayActProvider>
    </LiveProvider>
  );
}

/** Connects the embed's events with the embedding page. */
function ParentLink({ frame }: { frame: EmbedFrame }): null {
  const live = useLiveClient();
  useEffect(() => {
    frame.onTokenAccepted(() => live().wake());
    return followLinks((to, path) => frame.post({ type: 'navigate', to, path }));
  }, [frame, live]);
  useEffect(() => {
    if (frame.wantsHeight) return watchHeight((height) => frame.post({ type: 'height', height }));
  }, [frame]);
  return null;
}

/** Shown above the embed when its token has ended and no new one came. */
function SignedOut({ onAgain }: { onAgain: () => void }) {
  return (
    <p role="alert" className="flex flex-wrap items-baseline gap-x-3 bg-failed-soft px-4 py-2 text-failed text-xs">
      Updates have stopped, because the page around this frame hasn’t provided a new token. Sign in there again, or
      reload it.
      <button type="button" onClick={onAgain} className="underline">
        Try again
      </button>
    </p>
  );
}
