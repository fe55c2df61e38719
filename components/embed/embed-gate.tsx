'use client';

import { type ReactNode, useEffect, useState, useSyncExternalStore } from 'react';
import { EmbedFrame, type EmbedPhase } from './embed-frame';
import { EmbedOpen } from './embed-open';

interface GateProps {
  /** Those whose pages may embed this server. */
  origins: readonly string[];
  /** By how much the server's clock is ahead. */
  offsetMs: number;
  children: ReactNode;
}

const never = () => () => {};
const WAITING: EmbedPhase = { kind: 'waiting', words: null };

/** Shows what an embed is of once the page around it has given a token; until then, and where that may not be, words. */
export function EmbedGate({ origins, offsetMs, children }: GateProps) {
  const [frame, setFrame] = useState<EmbedFrame | null>(null);
  useEffect(() => {
    const made = new EmbedFrame(origins, offsetMs);
    setFrame(made);
    return made.start();
  }, [origins, offsetMs]);
  const phase = useSyncExternalStore(
    frame?.subscribe ?? never,
    () => frame?.phase ?? WAITING,
    () => WAITING,
  );
  if (phase.kind === 'refused') return <Words text={phase.why} />;
  if (frame === null || phase.kind === 'waiting') return <Words text={phase.kind === 'waiting' ? phase.words : null} />;
  const { limits, isSignedOut } = phase;
  return (
    <EmbedOpen frame={frame} mayAct={limits.mayAct} isSignedOut={isSignedOut}>
      {children}
    </EmbedOpen>
  );
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
