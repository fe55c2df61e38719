// @vitest-environment happy-dom

import { noSessions } from '@interlude/protocol/session-states';
import { act, cleanup, fireEvent, render, screen } from '@testing-library/react';
import { useEffect, useEffectEvent } from 'react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SessionPreview } from '@/app/(console)/session-preview';
import { LiveProvider } from '@/components/live/live-provider';
import { useInitialData } from '@/components/live/use-fleet';
import { type PreviewProps, SessionNav } from '@/components/sessions/session-nav';
import { NowProvider } from '@/components/ui/clock';
import { CodeOnDemand } from '@/components/ui/on-demand';
import { NextPage } from '../support/next-page';
import { aSession } from './rows';
import { scriptedFetch } from './scripted-stream';

/** Previewed sessions, in order. */
const loaded: string[] = [];

/** Stands for a session's content: no request, loaded at once. */
function Body({ sessionId, onReady }: { sessionId: string; onReady: () => void }) {
  const ready = useEffectEvent(onReady);
  useEffect(() => {
    loaded.push(sessionId);
    ready();
  }, [sessionId]);
  return (
    <>
      <textarea />
      <button type="button">Allow {sessionId}</button>
    </>
  );
}

const IDS = ['a', 'b', 'c', 'd', 'e', 'f'];
const previewCode = new CodeOnDemand(async () => (props: PreviewProps) => <SessionPreview {...props} body={Body} />);

function Page() {
  useInitialData((fleet) => {
    const idle = IDS.map((id, index) => aSession({ id, title: `Errand ${id}`, stateSince: 100 - index }));
    const urgent = aSession({ id: 'urgent', title: 'Asks', state: 'needs-input', stateSince: 1 });
    fleet.putSessions({
      ...{ sessions: [...idle, urgent], position: '10', next: null, hasMore: false },
      counts: { ...noSessions(), idle: IDS.length, 'needs-input': 1 },
    });
  });
  return <SessionNav currentId={null} keysEverywhere empty={null} preview={previewCode} />;
}

beforeEach(async () => {
  loaded.length = 0;
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  vi.stubGlobal('fetch', scriptedFetch().fetch);
  vi.stubGlobal('matchMedia', (media: string) => ({
    ...{ media, matches: media.includes('80rem') },
    addEventListener: () => {},
    removeEventListener: () => {},
  }));
  await previewCode.load();
  render(
    <NextPage>
      <NowProvider renderedAt={Date.now()}>
        <LiveProvider>
          <Page />
        </LiveProvider>
      </NowProvider>
    </NextPage>,
  );
  wait(1_000);
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const wait = (ms: number) => act(() => vi.advanceTimersByTime(ms));
const row = (id: string) => document.querySelector<HTMLElement>(`[data-session-row="${id}"]`) as HTMLElement;
const preview = () => screen.getByRole('region', { name: /^Preview of/ });
const shown = () => preview().getAttribute('aria-label')?.replace('Preview of ', '');
const point = (id: string, screenX: number) =>
  act(() => fireEvent.pointerMove(row(id), { screenX, screenY: 0, pointerType: 'mouse' }));

it('shows the most urgent session until another one is chosen', () => {
  expect(shown()).toBe('Asks');
  act(() => row('b').focus());
  wait(50);
  expect(shown()).toBe('Errand b');
});

it('passes over rows that the keys leave at once', () => {
  for (const id of IDS) {
    act(() => row(id).focus());
    wait(30);
  }
  wait(300);
  expect(shown()).toBe('Errand f');
  expect(loaded).toEqual(['urgent', 'a', 'f']);
});

it('follows a pointer that rests on a row, and not one that passes or rows that scroll below it', () => {
  point('a', 1);
  wait(100);
  point('b', 2);
  wait(100);
  expect(shown()).toBe('Asks');
  wait(100);
  wait(0);
  expect(shown()).toBe('Errand b');
  point('c', 2);
  wait(500);
  expect(shown()).toBe('Errand b');
  // An answer that is being written stays.
  act(() => screen.getByRole('textbox').focus());
  point('d', 3);
  wait(500);
  expect(shown()).toBe('Errand b');
});

it('hands the focus over with Tab and back with Escape, or to the next row at its end', () => {
  act(() => row('b').focus());
  wait(500);
  fireEvent.keyDown(row('b'), { key: 'Tab' });
  expect(document.activeElement).toBe(preview());
  fireEvent.keyDown(preview(), { key: 'Escape' });
  expect(document.activeElement).toBe(row('b'));
  const last = screen.getByRole('button', { name: 'Allow b' });
  last.focus();
  fireEvent.keyDown(last, { key: 'Tab' });
  expect(document.activeElement).toBe(row('c'));
});
