import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { expect, test } from 'vitest';
import { ClientParts } from '@/lib/server/agui/client-parts';
import { DeferredEvents } from '@/lib/server/agui/deferred-events';

const MIB = 1024 * 1024;
const entry = (event: AgUiEvent) => ({ position: '1', occurredAt: 1, receivedAt: 1, event });
const custom = (name: string, value: object) => entry({ type: 'CUSTOM', name, value });

test('limits deferred events to a few mebibytes, and counts the rest', () => {
  const held = new DeferredEvents(new ClientParts());
  for (let index = 0; index < 40; index += 1) held.defer(custom(`x${index}`, { text: 'x'.repeat(MIB - 100) }));
  const { entries, dropped } = held.release(null);
  expect([entries.map(({ event }) => event.name), dropped]).toEqual([['x36', 'x37', 'x38', 'x39'], 36]);
  // Released events no longer count.
  for (let index = 0; index < 3; index += 1) held.defer(custom(`y${index}`, { text: 'x'.repeat(MIB - 100) }));
  expect(held.release(null).dropped).toBe(0);
});

test('drops other events before messages', () => {
  const held = new DeferredEvents(new ClientParts());
  const says = (delta: string) =>
    held.deferMessage(entry({ type: 'TEXT_MESSAGE_CHUNK', messageId: 'u1', role: 'user', delta }), false);
  says('Hello');
  for (let index = 0; index < 40; index += 1) held.defer(custom(`x${index}`, { text: 'x'.repeat(MIB) }));
  for (let index = 0; index < 3; index += 1) says('x'.repeat(MIB));
  const { entries, dropped } = held.release(['u1']);
  expect([entries.map(({ event }) => event.messageId ?? event.name), dropped]).toEqual([['u1', 'u1', 'u1', 'u1'], 40]);
  says('Hello');
  for (let index = 0; index < 5; index += 1) says('x'.repeat(MIB));
  expect(held.release(['u1'])).toMatchObject({ entries: [], dropped: 1 });
});

test('keeps only the newest progress of a task', () => {
  const held = new DeferredEvents(new ClientParts());
  for (let index = 0; index < 300; index += 1)
    held.defer(custom('task:progress', { task_id: 't', summary: `${index}` }));
  const { entries, dropped } = held.release(null);
  expect([entries.map(({ event }) => event.value), dropped]).toEqual([[{ task_id: 't', summary: '299' }], 0]);
});
