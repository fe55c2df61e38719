'use client';

import { useEffect, useState } from 'react';
import { page } from './api-fetch';

/**
 * An `<img>` source for bytes from the API: the URL itself, or a blob URL where the page has its own fetch.
 *
 * @returns undefined until the bytes are loaded, and after a failure
 */
export function useSource(href: string | undefined): string | undefined {
  const [given, setGiven] = useState<string>();
  useEffect(() => {
    const { way } = page;
    if (way === null || href === undefined) return;
    let address: string | null = null;
    const left = new AbortController();
    void (async () => {
      const response = await way(href, { signal: left.signal });
      if (!response.ok) return;
      const bytes = await response.blob();
      if (left.signal.aborted) return;
      address = URL.createObjectURL(bytes);
      setGiven(address);
    })().catch(() => {
      // The image stays empty.
    });
    return () => {
      left.abort();
      if (address !== null) URL.revokeObjectURL(address);
    };
  }, [href]);
  return page.way === null ? href : given;
}
