import type { RequestItem } from '@interlude/protocol/read-models';
import { useMemo } from 'react';
import { inputParts, inputSize } from '@/components/requests/input-parts';
import { RequestCard } from '@/components/requests/request-card';
import { InputParts } from '@/components/transcript/tool-input';

/** A request with its tool input, as the transcript shows it. */
export function renderRequest(item: RequestItem, pinned?: { onDismiss: () => void }) {
  return <Request item={item} pinned={pinned ?? null} />;
}

function Request({ item, pinned }: { item: RequestItem; pinned: { onDismiss: () => void } | null }) {
  const { input } = item;
  // Closed requests show only one line.
  const isShown = item.outcome === null || pinned !== null;
  const { shown, size } = useMemo(() => {
    const parts = isShown ? inputParts({ args: input, argsText: '' }) : [];
    return { shown: parts.length === 0 ? null : <InputParts parts={parts} />, size: inputSize(parts) };
  }, [input, isShown]);
  return (
    <RequestCard item={item} input={shown} size={size} {...(pinned && { pinned: true, onDismiss: pinned.onDismiss })} />
  );
}
