'use client';

import { createContext, type ReactNode, useContext, useEffect, useEffectEvent } from 'react';

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

/** What the address names behind its "#". It has one owner on a page, who follows it and writes it. */
export function addressAnchor(): string {
  const hash = location.hash.slice(1);
  try {
    return decodeURIComponent(hash);
  } catch {
    // Cut in the middle of a sign: it names nothing, which is said as of any other.
    return hash;
  }
}

/** @param how `replace`: the way back does not lead to what it named before. Nobody is told of either. */
export function setAddressAnchor(anchor: string, how: 'push' | 'replace'): void {
  history[`${how}State`](null, '', `#${encodeURIComponent(anchor)}`);
}

/** Called at first, when the reader follows a link to somewhere on this page, and when they go back to where they were. */
export function useAddressAnchor(follow: (anchor: string, isFirst: boolean) => void): void {
  const onChange = useEffectEvent((isFirst: boolean) => follow(addressAnchor(), isFirst));
  useEffect(() => {
    const listen = () => onChange(false);
    onChange(true);
    addEventListener('hashchange', listen);
    addEventListener('popstate', listen);
    return () => {
      removeEventListener('hashchange', listen);
      removeEventListener('popstate', listen);
    };
  }, []);
}
