import type { RequestItem } from '@/lib/protocol/read-models';

/** What an answer to a request is known by among what was asked of the agent. */
export const requestKey = (item: Pick<RequestItem, 'id'>) => `request:${item.id}`;
