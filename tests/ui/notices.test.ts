import type { InboxItem } from '@interlude/protocol/inbox';
import { expect, it } from 'vitest';
import {
  currentNotices,
  isQuiet,
  NO_NOTICES,
  type NoticeSettings,
  nextCheck,
  noticeSettings,
  storedNotices,
} from '@/components/inbox/notices';
import { anInboxItem, aSession } from './rows';

const NOW = 100_000;
const ON = { ...NO_NOTICES, isOn: true };
const anItem = (fields: Partial<InboxItem>) => anInboxItem({ since: NOW, ...fields });
const bodies = (item: Partial<InboxItem>, settings = ON) =>
  currentNotices({ items: [anItem(item)], sessions: [] }, settings, NOW).map(({ body }) => body);

it.each([
  ['exit code 137', 'Exit code 137'],
  ['killed by SIGKILL: out of memory', 'Killed by SIGKILL: “out of memory”'],
  ['API Error: 529', '“API Error: 529”'],
])('quote only the agent’s words about a failure: %s', (title, body) => {
  expect(bodies({ kind: 'failure', title, since: NOW - 3_000 })).toEqual([body]);
});

it('include requests at once, and failures after settling', () => {
  expect(bodies({})).toEqual(['“Run make?”']);
  expect(bodies({ kind: 'failure', since: NOW - 2_999 })).toEqual([]);
  expect(bodies({ kind: 'failure', since: NOW - 3_000 })).toEqual(['“Run make?”']);
});

it('quote agents’ words, but not the server’s', () => {
  const since = NOW - 3_000;
  expect(bodies({ kind: 'undelivered', title: 'a: b: failed, exit code 3', since })).toEqual([
    '“a: b”: failed, exit code 3',
  ]);
  expect(bodies({ kind: 'lost-contact', title: 'its runner has gone', sessionId: 's', since })).toEqual([
    'its runner has gone',
  ]);
  expect(bodies({ kind: 'lost-contact', title: 'ECONNREFUSED', sessionId: null, since })).toEqual(['“ECONNREFUSED”']);
});

it('omit seen, snoozed, claimed, done and disabled items', () => {
  const claim = { by: { id: 'ada', name: 'Ada' }, at: NOW };
  for (const over of [{ seenAt: 1 }, { snoozedUntil: NOW + 1 }, { claim }, { doneAt: 1 }]) {
    expect(bodies(over)).toEqual([]);
  }
  expect(bodies({}, { ...ON, off: ['permission'] })).toEqual([]);
});

it('include finished sessions without running tasks, if enabled', () => {
  const all: NoticeSettings = { ...ON, off: [] };
  const finished = (fields: object, settings = all) =>
    currentNotices({ items: [], sessions: [aSession({ stateSince: NOW - 5_000, ...fields })] }, settings, NOW).length;
  expect(finished({})).toBe(1);
  expect(finished({}, ON)).toBe(0);
  expect(finished({ runningTaskCount: 1 })).toBe(0);
  expect(finished({ state: 'working' })).toBe(0);
  expect(finished({ stateSince: NOW - 1_000 })).toBe(0);
});

it('include failed tasks if enabled, except in archived sessions', () => {
  const all: NoticeSettings = { ...ON, off: [] };
  const failedTask = { id: 'b1', description: 'npm test', exitCode: 3, position: '7', at: NOW - 5_000 };
  const listedState = (fields: object, settings = all) =>
    currentNotices({ items: [], sessions: [aSession({ state: 'working', failedTask, ...fields })] }, settings, NOW);
  expect(listedState({})).toMatchObject([
    { body: '“npm test” (exit code 3)', href: '/sessions/s#task-7', at: NOW - 5_000 },
  ]);
  expect(listedState({}, ON)).toEqual([]);
  expect(listedState({ arrangement: { name: null, pinnedAt: null, archivedAt: 1, seenState: null } })).toEqual([]);
});

it('include failed tasks only if chosen, whatever earlier versions stored', () => {
  expect(noticeSettings('{"isOn":true,"off":[],"quiet":null}').off).toEqual(['task-failed']);
  expect(noticeSettings('{"isOn":true,"off":["finished"],"quiet":null}').off).toEqual(['finished', 'task-failed']);
  const chosen: NoticeSettings = { ...ON, off: ['parked', 'finished'] };
  expect(noticeSettings(storedNotices(chosen))).toEqual(chosen);
});

it('nextLook skips a session that finished before the last check and changed after it', () => {
  const all: NoticeSettings = { ...ON, off: [] };
  const before = { at: NOW, upTo: '10', told: [] };
  const freshAfter = (stateSince: number) => {
    const sessions = [aSession({ stateSince, updatedPosition: '12' })];
    const now = NOW + 5_000;
    return nextCheck(before, currentNotices({ items: [], sessions }, all, now), now, '12').fresh.length;
  };
  expect([freshAfter(NOW - 60_000), freshAfter(NOW + 1_000)]).toEqual([0, 1]);
});

it('respect quiet hours, also over midnight', () => {
  const night = { ...ON, quiet: { from: '22:00', to: '07:00' } };
  expect(['21:59', '22:00', '03:00', '07:00'].map((time) => isQuiet(night, time))).toEqual([false, true, true, false]);
  const noon = { ...ON, quiet: { from: '12:00', to: '13:00' } };
  expect(['11:59', '12:30', '13:00'].map((time) => isQuiet(noon, time))).toEqual([false, true, false]);
});

it('are off without valid settings', () => {
  for (const kept of [null, '', '{', 'null', '{"isOn":"yes"}', '{"isOn":true,"off":5}']) {
    expect(noticeSettings(kept).isOn && noticeSettings(kept).quiet !== null).toBe(false);
  }
  expect(noticeSettings(JSON.stringify({ ...ON, quiet: { from: '1', to: '2' } }))).toEqual(ON);
});
