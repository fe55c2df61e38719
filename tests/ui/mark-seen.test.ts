import type { InboxItem } from '@interlude/protocol/inbox';
import type { AgentSummary } from '@interlude/protocol/read-models';
import { afterEach, expect, it, vi } from 'vitest';
import { markSeen } from '@/components/agents/selection-bar';

afterEach(() => vi.unstubAllGlobals());

/** A server with these items. Some have reopened by the time they are marked. */
function inboxOf(items: Pick<InboxItem, 'id' | 'updatedPosition' | 'seenAt'>[], changed: string[]): unknown[] {
  const marks: unknown[] = [];
  vi.stubGlobal('fetch', (_url: string, { body }: { body?: string }) => {
    if (body !== undefined) marks.push(JSON.parse(body));
    return Promise.resolve(
      Response.json(body === undefined ? { items, next: null } : { items, changed, position: '9' }),
    );
  });
  return marks;
}
const item = (id: string, seenAt: number | null = null) => ({ id, updatedPosition: '5', seenAt });
const agent = { id: 'a' } as AgentSummary;

it('marks items as they were read', async () => {
  const marks = inboxOf([item('x'), item('y'), item('z', 1)], []);
  expect(await markSeen(agent)).toBe('2 items marked as seen');
  const items = ['x', 'y'].map((id) => ({ id, updatedPosition: '5' }));
  expect(marks).toEqual([{ items, mark: 'seen' }]);
});

it('reports new items that stay unseen', async () => {
  inboxOf([item('x'), item('y')], ['y']);
  expect(await markSeen(agent)).toBe('1 item marked as seen; 1 item changed meanwhile. Review and try again.');
  inboxOf([item('y')], ['y']);
  expect(await markSeen(agent)).toBe('no items marked as seen; 1 item changed meanwhile. Review and try again.');
});
