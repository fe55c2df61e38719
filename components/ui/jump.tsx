'use client';

import { createContext, type ReactNode, useContext } from 'react';

/** Brings the element with this id into view, loading it first where need be. */
export type Jump = (anchor: string) => void;

const JumpContext = createContext<Jump | null>(null);

export function JumpProvider({ jump, children }: { jump: Jump; children: ReactNode }) {
  return <JumpContext value={jump}>{children}</JumpContext>;
}

/** A link within the page to something that may not be on it yet. It is a real link: it can be copied and opened. */
export function JumpLink(props: { anchor: string; className?: string; title?: string; children: ReactNode }) {
  const { anchor, className, title, children } = props;
  const jump = useContext(JumpContext);
  return (
    <a
      href={`#${encodeURIComponent(anchor)}`}
      title={title}
      className={className}
      onClick={(event) => {
        if (!jump || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        jump(anchor);
      }}
    >
      {children}
    </a>
  );
}
