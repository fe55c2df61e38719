import { RequestCard } from '@/components/requests/request-card';
import { inputParts, inputSize } from '@/components/transcript/input-parts';
import { ToolInput } from '@/components/transcript/tool-input';
import type { RequestItem } from '@/lib/protocol/read-models';

/** A request with what it is about, shown as the transcript shows what tools are given. */
export function renderRequest(item: RequestItem, pinned?: { onDismiss: () => void }) {
  const call = { args: item.input, argsText: '' };
  // Of one that is over only its line is shown.
  const parts = item.outcome === null || pinned ? inputParts(call) : [];
  return (
    <RequestCard
      item={item}
      input={parts.length === 0 ? null : <ToolInput call={call} />}
      size={inputSize(parts)}
      {...(pinned && { pinned: true, onDismiss: pinned.onDismiss })}
    />
  );
}
