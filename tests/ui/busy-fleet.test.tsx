// @vitest-environment happy-dom
import { cleanup, render } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type SessionStart, SessionView } from '@/app/(console)/sessions/[sessionId]/session-view';
import { OutgoingProvider } from '@/components/composer/outgoing-provider';
import { LiveConnection } from '@/components/live/live-connection';
import { LiveProvider } from '@/components/live/live-provider';
import { useStart } from '@/components/live/use-fleet';
import { SessionNav } from '@/components/sessions/session-nav';
import { NowProvider } from '@/components/ui/now';
import { aMessage, aSession, aTask, aTurn } from './rows';
import { type ScriptedStream, scriptedFetch } from './scripted-stream';

/** How often each part was rendered; the parts themselves are the real ones. */
const renders = vi.hoisted(() => ({ header: 0, transcript: 0 }));
vi.mock('@/app/(console)/sessions/[sessionId]/session-header', async (original) => {
  const real = await original<typeof import('@/app/(console)/sessions/[sessionId]/session-header')>();
  const SessionHeader: typeof real.SessionHeader = (props) => {
    renders.header += 1;
    return real.SessionHeader(props);
  };
  return { ...real, SessionHeader };
});
vi.mock('@/components/transcript/transcript', async (original) => {
  const real = await original<typeof import('@/components/transcript/transcript')>();
  const Transcript: typeof real.Transcript = (props) => {
    renders.transcript += 1;
    return real.Transcript(props);
  };
  return { ...real, Transcript };
});
const shown = aSession({ id: 'shown', title: 'Shown here' });
const other = aSession({ id: 'other', title: 'Another one' });
const start: SessionStart = {
  session: { session: shown, position: '10' },
  agent: null,
  tasks: { list: { tasks: [aTask({ sessionId: 'shown' })], position: '10' }, whole: true },
  transcript: { position: '10', hasMore: false, turns: [aTurn({ items: [aMessage({ text: 'Hello' })] })] },
};

function Beside() {
  useStart((fleet) => {
    const counts = { failed: 0, waiting: 0, working: 0, idle: 2, done: 0 };
    fleet.takeSessions({ sessions: [shown, other], position: '9', hasMore: false, next: null, counts });
  });
  return <SessionNav currentId="shown" keysEverywhere={false} empty={null} />;
}

let script: ReturnType<typeof scriptedFetch>;
beforeEach(() => {
  script = scriptedFetch();
  vi.stubGlobal('fetch', script.fetch);
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it('news of other sessions renders neither the transcript nor the header of the one that is shown, and each topic is read once', async () => {
  const subscribe = vi.spyOn(LiveConnection.prototype, 'subscribe');
  const page = render(
    <NowProvider renderedAt={Date.now()}>
      <LiveProvider>
        <Beside />
        <OutgoingProvider>
          <SessionView sessionId="shown" initial={JSON.stringify(start)} nonce={undefined} />
        </OutgoingProvider>
      </LiveProvider>
    </NowProvider>,
  );
  await page.findByText('Another one');
  await vi.waitFor(() => expect(script.streams.at(-1)?.topics).toEqual(['fleet', 'session:shown']));
  const stream = script.streams.at(-1) as ScriptedStream;
  stream.accept().send({ event: 'up-to-date', data: { position: '10' } });
  await page.findByText('Live');
  const before = { ...renders };
  for (let id = 11; id < 40; id++) {
    stream.send(
      {
        event: 'session',
        id: String(2 * id),
        data: { ...other, title: `Busy ${id}`, updatedPosition: String(2 * id) },
      },
      { event: 'task', id: String(2 * id + 1), data: aTask({ sessionId: 'other', position: String(id) }) },
    );
    await page.findByText(`Busy ${id}`);
  }
  expect(renders).toEqual(before);
  expect(subscribe.mock.calls.map(([topic]) => topic).sort()).toEqual(['fleet', 'session:shown']);

  const renamed = { ...shown, title: 'Shown anew', updatedPosition: '100' };
  stream.send({ event: 'session', id: '100', data: renamed });
  await page.findByRole('heading', { name: 'Shown anew' });
  expect([renders.header > before.header, renders.transcript]).toEqual([true, before.transcript]);
});
