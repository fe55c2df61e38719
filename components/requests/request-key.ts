import type { RequestItem } from '@interlude/protocol/read-models';

/**
 * What a request, and an answer to it, is known by on the page: its id, where it was opened, and what it asks for. One
 * that is opened again under the same id is another one.
 */
export function requestKey(item: Pick<RequestItem, 'id' | 'position' | 'digest'>): string {
  return `request:${item.id}:${item.position}:${item.digest ?? ''}`;
}
