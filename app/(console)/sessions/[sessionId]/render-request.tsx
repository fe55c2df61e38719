import { RequestCard } from '@/components/requests/request-card';
import { ToolInput } from '@/components/transcript/tool-input';
import { toolName } from '@/components/transcript/tool-words';
import type { RequestItem } from '@/lib/protocol/read-models';

/** A request with what it is about, shown as the transcript shows what tools are given. */
export function renderRequest(item: RequestItem, pinned = false) {
  const tool = item.toolName !== null && !item.title.includes(item.toolName) ? toolName(item.toolName) : null;
  const input = item.input === null ? null : <ToolInput call={{ args: item.input, argsText: '' }} />;
  return <RequestCard item={item} input={input} tool={tool} pinned={pinned} />;
}
