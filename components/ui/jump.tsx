'use client';

import { createContext, type ReactNode, useContext, useEffect, useEffectEvent } from 'react';

/** Scrolls to the element with this id, loading it first if necessary. */
export type Jump = (anchor: string) => void;

const JumpContext = createContext<Jump | null>(null);

export function JumpProvider({ jump, children }: { jump: Jump; children: ReactNode }) {
  return <JumpContext value={jump}>{children}</JumpContext>;
}

/** A link to an anchor that may not be loaded yet. A real link, so it can be copied and opened in a tab. */
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

/** The decoded fragment of the page's URL. Only one component of a page reads and writes it. */
export function addressAnchor(): string {
  const hash = location.hash.slice(1);
  try {
    return decodeURIComponent(hash);
  } catch {
    // Truncated within an escape: no anchor has this name.
    return hash;
  }
}

/**
 * Sets the fragment of the page's URL. Its anchors are in the page's first tab, so `tab` is removed.
 *
 * @param how `replace` adds no history entry. Neither fires an event.
 */
export function setAddressAnchor(anchor: string, how: 'push' | 'replace'): void {
  history[`${how}State`](null, '', addressWith(location.href, anchor));
}

/** The URL with this fragment and without `tab`. */
export function addressWith(address: string, anchor: string): URL {
  const url = new URL(address);
  url.searchParams.delete('tab');
  url.hash = anchor === '' ? '' : encodeURIComponent(anchor);
  return url;
}

/** Calls `follow` on mount, when the reader follows a link within the page, and on Back and Forward. */
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
