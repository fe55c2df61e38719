// @vitest-environment happy-dom

import type { Frame } from '@interlude/protocol/frames';
import type { InboxItem, InboxList } from '@interlude/protocol/inbox';
import { noItems } from '@interlude/protocol/vocabulary';
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { DesktopNotices } from '@/components/inbox/desktop-notices';
import { itemsOf } from '@/components/inbox/inbox-items';
import { LAST_CHECK_KEY, NO_NOTICES, SETTINGS_KEY } from '@/components/inbox/notices';
import { LiveProvider } from '@/components/live/live-provider';
import { useInitialData } from '@/components/live/use-fleet';
import { NoticePanel } from '@/components/settings/notice-panel';
import { storageKey } from '@/components/ui/browser-storage';
import { NowProvider } from '@/components/ui/clock';
import { NextPage } from '../support/next-page';
import { anInboxItem } from './rows';
import { type ScriptedStream, scriptedFetch } from './scripted-stream';

let script: ReturnType<typeof scriptedFetch>;
let shown: string[];

/** Stands in for the browser. */
class Told {
  static permission = 'granted';
  static requestPermission = async () => 'granted';
  constructor(_title: string, { body }: { body: string }) {
    shown.push(body);
  }
  close() {}
}
class Throws {
  static permission = 'granted';
  static requestPermission = async () => 'granted';
  constructor() {
    throw new TypeError('Illegal constructor. Use ServiceWorkerRegistration.showNotification() instead.');
  }
}
/** A lock with its waiting requests. */
function oneLock() {
  let last: Promise<unknown> = Promise.resolve();
  return {
    request: (_name: string, _options: object, held?: () => Promise<unknown>) => {
      if (held === undefined) return new Promise(() => {});
      last = last.then(held);
      return last;
    },
  };
}

beforeEach(() => {
  vi.useFakeTimers({ shouldAdvanceTime: true });
  script = scriptedFetch();
  shown = [];
  localStorage.clear();
  localStorage.setItem(storageKey(SETTINGS_KEY), JSON.stringify({ ...NO_NOTICES, isOn: true }));
  vi.stubGlobal('fetch', script.fetch);
  vi.stubGlobal('Notification', Told);
  vi.stubGlobal('isSecureContext', true);
  Object.defineProperty(navigator, 'locks', { configurable: true, value: oneLock() });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** @param items the loaded inbox; null: not loaded yet */
function Page({
  position,
  items,
  next,
}: {
  position: string;
  items: readonly InboxItem[] | null;
  next: string | null;
}) {
  useInitialData((fleet) => {
    if (items === null) fleet.putAgents({ agents: [], position, next: null, count: 0 });
    else itemsOf(fleet).putList({ items: [...items], position, next, counts: noItems() });
  });
  return (
    <>
      <DesktopNotices />
      <NoticePanel />
    </>
  );
}

async function openPage(position: string, items: readonly InboxItem[] | null, next: string | null = null) {
  const page = render(
    <NextPage>
      <NowProvider renderedAt={Date.now()}>
        <LiveProvider>
          <Page position={position} items={items} next={next} />
        </LiveProvider>
      </NowProvider>
    </NextPage>,
  );
  const stream = await nextStream(0);
  return { page, stream };
}

async function nextStream(known: number): Promise<ScriptedStream> {
  await vi.waitFor(() => expect(script.streams.length).toBeGreaterThan(known));
  return script.streams.at(-1) as ScriptedStream;
}

const upToDate = (position: string): Frame => ({ event: 'up-to-date', data: { position } });
const comesUp = (id: string, fields: Partial<InboxItem> = {}): Frame => {
  const since = Date.now();
  return {
    event: 'inbox',
    id,
    data: anInboxItem({ id: `item ${id}`, title: `Asked at ${id}`, since, updatedPosition: id, ...fields }),
  };
};
/** Waits for a check, which runs once a second. */
const looks = () => act(() => vi.advanceTimersByTimeAsync(1_500));

it('shows in the panel that the browser refuses notifications', async () => {
  vi.stubGlobal('Notification', Throws);
  const { stream } = await openPage('10', []);
  stream.accept().send(upToDate('10'));
  await looks();
  stream.send(comesUp('11'));
  await screen.findByText(/^This browser can’t show notifications/);
  fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
  await screen.findByRole('checkbox', { name: 'Permissions' });
});

it('checks support before requesting permission', async () => {
  localStorage.clear();
  const asked = vi.fn(async () => 'granted');
  vi.stubGlobal(
    'Notification',
    Object.assign(class extends Throws {}, { permission: 'default', requestPermission: asked }),
  );
  await openPage('10', []);
  fireEvent.click(screen.getByRole('button', { name: 'Turn on desktop notifications' }));
  await screen.findByText(/^This browser can’t show notifications/);
  expect(asked).not.toHaveBeenCalled();
});

it('shows in the panel that tabs can’t elect a notifier', async () => {
  Object.defineProperty(navigator, 'locks', {
    configurable: true,
    value: { request: () => Promise.reject(new DOMException('no storage here', 'SecurityError')) },
  });
  await openPage('10', []);
  await screen.findByText(/^This browser can’t show notifications/);
});

it('notifies after reconnecting, however late', async () => {
  const { stream } = await openPage('10', [anInboxItem({ id: 'old', title: 'Stood before' })]);
  stream.accept().send(upToDate('10'));
  await looks();
  stream.cut();
  await looks();
  const again = await nextStream(1);
  again.accept().send(comesUp('11', { since: Date.now() - 600_000 }), upToDate('11'));
  await vi.waitFor(() => expect(shown).toEqual(['“Asked at 11”']));
});

it('skips a failure that returns unchanged after an undelivered retry', async () => {
  const { stream } = await openPage('10', []);
  stream.accept().send(upToDate('10'));
  await looks();
  const failure = { kind: 'failure', since: Date.now() - 60_000, openedPosition: '5' } as const;
  stream.send(comesUp('11', failure), comesUp('12'));
  await vi.waitFor(() => expect(shown).toContain('“Asked at 12”'));
  await looks();
  expect(shown).toEqual(['“Asked at 12”']);
});

it('notifies after reading the inbox, but not on the first visit', async () => {
  const late = { since: Date.now() - 600_000 };
  const first = await openPage('10', [
    anInboxItem({ id: 'old', title: 'Stood before', updatedPosition: '9', ...late }),
  ]);
  first.stream.accept().send(upToDate('10'));
  await looks();
  expect(shown).toEqual([]);
  first.page.unmount();

  Object.defineProperty(navigator, 'locks', { configurable: true, value: oneLock() });
  script.streams.length = 0;
  // A new item arrives before the page has read the inbox.
  const { stream } = await openPage('20', null);
  stream.accept().send(upToDate('20'));
  await looks();
  expect(shown).toEqual([]);
  cleanup();

  Object.defineProperty(navigator, 'locks', { configurable: true, value: oneLock() });
  script.streams.length = 0;
  const items = [
    anInboxItem({ id: 'old', title: 'Stood before', updatedPosition: '9', ...late }),
    anInboxItem({ id: 'new', title: 'Came up meanwhile', updatedPosition: '15', ...late }),
  ];
  const third = await openPage('21', items);
  third.stream.accept().send(upToDate('21'));
  await vi.waitFor(() => expect(shown).toEqual(['“Came up meanwhile”']));
  third.page.unmount();

  Object.defineProperty(navigator, 'locks', { configurable: true, value: oneLock() });
  script.streams.length = 0;
  const fourth = await openPage('21', items);
  fourth.stream.accept().send(upToDate('21'));
  await looks();
  expect(shown).toEqual(['“Came up meanwhile”']);
});

it('notifies about new items outside the first page of the inbox', async () => {
  localStorage.setItem(storageKey(LAST_CHECK_KEY), JSON.stringify({ at: Date.now() - 600_000, upTo: '10', told: [] }));
  const late = { since: Date.now() - 700_000 };
  const asked: string[] = [];
  vi.stubGlobal('fetch', async (url: string, init?: RequestInit) => {
    if (url.includes('/stream')) return script.fetch(url, init);
    asked.push(url);
    const items = [
      anInboxItem({ id: 'old', title: 'Stood before', updatedPosition: '8', ...late }),
      anInboxItem({ id: 'new', title: 'Came up meanwhile', updatedPosition: '15', ...late }),
    ];
    return Response.json({ items, position: '20', next: null, counts: noItems() } satisfies InboxList);
  });
  const { stream } = await openPage('20', [anInboxItem({ updatedPosition: '9', ...late })], 'permission.1.i');
  stream.accept().send(upToDate('20'));
  await vi.waitFor(() => expect(shown).toEqual(['“Came up meanwhile”']));
  await looks();
  expect([shown.length, asked]).toEqual([1, [expect.stringContaining('after=permission.1.i')]]);
});
