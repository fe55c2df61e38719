import type { Item, RequestItem, ToolCallItem } from '@/lib/protocol/read-models';

/** How it stands with a call. One that asks whether it may run does not run, whatever its events say so far. */
export type CallStanding = ToolCallItem['status'] | 'waiting' | 'denied' | 'expired' | 'withdrawn';

/**
 * @param request what was asked about it last
 * @param isOver whether the time to answer that is over
 */
export function callStanding(
  { status }: Pick<ToolCallItem, 'status'>,
  request: Pick<RequestItem, 'outcome' | 'answer'> | undefined,
  isOver: boolean,
): CallStanding {
  switch (request?.outcome) {
    case null:
      if (status !== 'running') return status;
      return hasLapsed(request, isOver) ? 'expired' : 'waiting';
    case 'denied':
    case 'expired':
      return request.outcome;
    case 'cancelled':
      // Nobody asks any more, which may be because it was allowed where the agent runs.
      return status === 'completed' ? status : 'withdrawn';
    default:
      return status;
  }
}

/** Whether the time to answer a request is over, and no answer is on its way, though nobody has said so. */
export function hasLapsed({ outcome, answer }: Pick<RequestItem, 'outcome' | 'answer'>, isOver: boolean): boolean {
  return isOver && outcome === null && (answer === null || answer.state === 'failed');
}

/** What was asked about each call, by its id: the last, where it was asked more than once. */
export function requestsByCall(items: readonly Item[]): ReadonlyMap<string, RequestItem> {
  const requests = new Map<string, RequestItem>();
  for (const item of items) {
    if (item.kind === 'request' && item.toolCallId !== null) requests.set(item.toolCallId, item);
  }
  return requests;
}
