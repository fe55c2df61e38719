'use client';

import { useEffect, useState } from 'react';
import { page } from './ask-server';

/**
 * Where an `<img>` finds bytes of the API: there, or where this page asks in a way of its own, in what it was given.
 *
 * @returns undefined until they are there, and where they can't be had
 */
export function useSource(href: string | undefined): string | undefined {
  const [given, setGiven] = useState<string>();
  useEffect(() => {
    const { way } = page;
    if (way === null || href === undefined) return;
    let address: string | null = null;
    const left = new AbortController();
    void (async () => {
      const answer = await way(href, { signal: left.signal });
      if (!answer.ok) return;
      const bytes = await answer.blob();
      if (left.signal.aborted) return;
      address = URL.createObjectURL(bytes);
      setGiven(address);
    })().catch(() => {
      // as a picture that does not come
    });
    return () => {
      left.abort();
      if (address !== null) URL.revokeObjectURL(address);
    };
  }, [href]);
  return page.way === null ? href : given;
}
