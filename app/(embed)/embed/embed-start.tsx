'use client';

import { type ComponentType, useEffect, useState } from 'react';
import { EmbedNotice } from '@/components/embed/embed-notice';
import type { EmbedViewProps } from './embed-view';

const AGAIN_MS = 3_000;

/** Loads the code of an embed separately, so that it doesn't split the chunks of the dashboard's pages. */
export function EmbedStart(props: Omit<EmbedViewProps, 'offsetMs'> & { renderedAt: number }) {
  const { renderedAt, ...rest } = props;
  const [View, setView] = useState<ComponentType<EmbedViewProps> | null>(null);
  const [offsetMs] = useState(() => (typeof window === 'undefined' ? 0 : renderedAt - Date.now()));
  const [hasFailed, setFailed] = useState(false);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout>;
    const load = () =>
      import('./embed-view').then(
        ({ EmbedView }) => setView(() => EmbedView),
        () => {
          setFailed(true);
          timer = setTimeout(load, AGAIN_MS);
        },
      );
    void load();
    return () => clearTimeout(timer);
  }, []);
  if (View !== null) return <View offsetMs={offsetMs} {...rest} />;
  if (!hasFailed) return <EmbedNotice title="Connecting…" />;
  return <EmbedNotice title="Still loading" why="Interlude’s code could not be loaded. Retrying…" />;
}
