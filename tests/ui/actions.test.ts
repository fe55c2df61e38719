import { afterEach, expect, it, vi } from 'vitest';
import { ActionStore } from '@/components/live/actions';

afterEach(() => vi.unstubAllGlobals());

/** Bodies sent to a server that never responds. */
function unanswered(): { clientId: string }[] {
  const sent: { clientId: string }[] = [];
  vi.stubGlobal('fetch', async (_url: string, { body }: { body: string }) => {
    sent.push(JSON.parse(body));
    throw new TypeError('cut off');
  });
  return sent;
}

it('keeps the clientId for the same request, and changes it for another', async () => {
  const sent = unanswered();
  const store = new ActionStore('s', () => {});
  const allow = { behavior: 'allow', digest: 'd' };
  await store.ask('request:q', '/requests/q', allow);
  await store.ask('request:q', '/requests/q', { ...allow });
  await store.ask('request:q', '/requests/q', { ...allow, behavior: 'deny' });
  const [first, again, other] = sent.map(({ clientId }) => clientId);
  expect(again).toBe(first);
  expect(other).not.toBe(first);
});
