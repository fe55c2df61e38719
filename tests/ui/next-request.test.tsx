// @vitest-environment happy-dom

import type { InboxItem, InboxList } from '@interlude/protocol/inbox';
import { noItems } from '@interlude/protocol/vocabulary';
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Background } from '@/app/(console)/background';
import { itemsOf } from '@/components/inbox/inbox-items';
import { LiveProvider } from '@/components/live/live-provider';
import { useInitialData } from '@/components/live/use-fleet';
import { requestKey } from '@/components/requests/request-answer';
import { NowProvider } from '@/components/ui/clock';
import { NextPage } from '../support/next-page';
import { anInboxItem } from './rows';
import { scriptedFetch } from './scripted-stream';

const requestOf = (id: string) => ({ id, digest: id, openedPosition: '3', answerBy: null });
const items: InboxItem[] = ['first', 'second', 'third'].map((id, index) =>
  anInboxItem({ id, sessionId: `of ${id}`, since: index, request: requestOf(id) }),
);
const initial: InboxList = { items, position: '10', next: null, counts: { ...noItems(), permission: 3 } };

function Page({ shown }: { shown: readonly string[] }) {
  useInitialData((fleet) => itemsOf(fleet).putList(initial));
  return (
    <>
      <Background />
      <main id="content">
        <p data-inbox-row="session of first" tabIndex={-1} />
      </main>
      {shown.map((id) => (
        <section
          key={id}
          data-action={requestKey({ id, position: '3', digest: id })}
          aria-label={id}
          // biome-ignore lint/a11y/noNoninteractiveTabindex: as a request's card
          tabIndex={0}
        />
      ))}
    </>
  );
}

function open(path: string, shown: readonly string[]) {
  history.replaceState(null, '', path);
  render(
    <NextPage>
      <NowProvider renderedAt={Date.now()}>
        <LiveProvider>
          <Page shown={shown} />
        </LiveProvider>
      </NowProvider>
    </NextPage>,
  );
}

beforeEach(() => {
  const { fetch } = scriptedFetch();
  vi.stubGlobal('fetch', async (url: string, init?: RequestInit) =>
    url.includes('/inbox') ? Response.json(initial) : fetch(url, init),
  );
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const press = (key = 'r') => act(() => void fireEvent.keyDown(document.activeElement ?? document.body, { key }));

it('"r" focuses the request that the page shows, then goes to the one after it', () => {
  open('/sessions/of%20second', ['second']);
  press();
  expect(document.activeElement).toBe(screen.getByRole('region', { name: 'second' }));
  expect(location.pathname).toBe('/sessions/of%20second');
  press();
  expect(location.pathname + location.hash).toBe('/sessions/of%20third#request-third');
});

it('"r" goes to the request of the page before its card is shown', () => {
  open('/sessions/of%20second', []);
  press();
  expect(location.pathname + location.hash).toBe('/sessions/of%20second#request-second');
});

it('"r" starts with the oldest request on a page without one', () => {
  open('/agents', []);
  press();
  expect(location.pathname).toBe('/sessions/of%20first');
});

it.each([
  ['/inbox?kind=permission', '/inbox?kind=permission'],
  ['/agents', '/'],
])('Esc leads from a session that %s has opened to %s', (before, after) => {
  open(before, []);
  act(() => history.pushState(null, '', '/sessions/of%20first'));
  press('Escape');
  expect(location.pathname + location.search).toBe(after);
  if (before !== after) return;
  expect(document.activeElement?.getAttribute('data-inbox-row')).toBe('session of first');
});
