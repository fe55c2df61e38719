'use client';

import { type ReactNode, useEffect, useState } from 'react';
import { useSelected } from '@/components/live/use-folded';
import { EmbedFrame } from './embed-frame';
import { EmbedNotice } from './embed-notice';
import { EmbedOpen } from './embed-open';

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
