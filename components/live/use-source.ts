'use client';

import { useEffect, useState } from 'react';
import { pageTransport } from './api-fetch';

/**
 * An `<img>` source for bytes from the API: the URL itself, or a blob URL where the page has its own fetch.
 *
 * @returns undefined until the bytes are loaded, and after a failure
 */
export function useSource(href: string | undefined): string | undefined {
  const [blobUrl, setBlobUrl] = useState<string>();
  useEffect(() => {
    const load = pageTransport.fetch;
    if (load === null || href === undefined) return;
    let address: string | null = null;
    const controller = new AbortController();
    void (async () => {
      const response = await load(href, { signal: controller.signal });
      if (!response.ok) return;
      const bytes = await response.blob();
      if (controller.signal.aborted) return;
      address = URL.createObjectURL(bytes);
      setBlobUrl(address);
    })().catch(() => {
      // The image stays empty.
    });
    return () => {
      controller.abort();
      if (address !== null) URL.revokeObjectURL(address);
    };
  }, [href]);
  return pageTransport.fetch === null ? href : blobUrl;
}
