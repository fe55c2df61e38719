// @vitest-environment happy-dom

import type { SessionSummary } from '@interlude/protocol/read-models';
import { noSessions } from '@interlude/protocol/session-states';
import { API_BASE } from '@interlude/protocol/version';
import { cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, beforeEach, expect, it, type MockInstance, vi } from 'vitest';
import { PreviewBody } from '@/app/(console)/preview-body';
import * as headerPart from '@/app/(console)/sessions/[sessionId]/session-header';
import type { SessionStart } from '@/app/(console)/sessions/[sessionId]/session-stores';
import { SessionView } from '@/app/(console)/sessions/[sessionId]/session-view';
import { transcriptCode } from '@/app/(console)/sessions/[sessionId]/transcript-code';
import { AnswerStoresProvider } from '@/components/inbox/item-request';
import { LiveConnection } from '@/components/live/live-connection';
import { LiveProvider } from '@/components/live/live-provider';
import { useInitialData } from '@/components/live/use-fleet';
import { SessionNav } from '@/components/sessions/session-nav';
import * as transcriptPart from '@/components/transcript/transcript';
import { NowProvider } from '@/components/ui/clock';
import { aMessage, aSession, aTask, aTurn } from './rows';
import { type ScriptedStream, scriptedFetch } from './scripted-stream';

/** Counts renders of each part. Without a layout, the transcript shows no rows. */
let header: MockInstance<typeof headerPart.SessionHeader>;
let transcript: MockInstance<typeof transcriptPart.Transcript>;
const renders = () => ({ header: header.mock.calls.length, transcript: transcript.mock.calls.length });
const turnsGiven = () => transcript.mock.lastCall?.[0].state.turns;

const shown = aSession({ id: 'shown', title: 'Shown here' });
const other = aSession({ id: 'other', title: 'Another one' });
const start: SessionStart = {
  session: { session: shown, position: '10' },
  agent: null,
  tasks: { tasks: [aTask({ sessionId: 'shown' })], position: '10' },
  transcript: { position: '10', hasMore: false, turns: [aTurn({ items: [aMessage({ text: 'Hello' })] })] },
};

function Beside({ session }: { session: SessionSummary }) {
  useInitialData((fleet) => {
    const counts = { ...noSessions(), idle: 2 };
    fleet.putSessions({ sessions: [session, other], position: '9', hasMore: false, next: null, counts });
  });
  return <SessionNav currentId="shown" keysEverywhere={false} empty={null} />;
}

let script: ReturnType<typeof scriptedFetch>;
/** Responses by path below the API. */
let answers: Record<string, unknown>;
beforeEach(() => {
  header = vi.spyOn(headerPart, 'SessionHeader');
  transcript = vi.spyOn(transcriptPart, 'Transcript');
  script = scriptedFetch();
  answers = {};
  vi.stubGlobal('fetch', async (url: string, init?: RequestInit) => {
    const path = url.replace(API_BASE, '');
    if (path.startsWith('/stream')) return script.fetch(url, init);
    const found = answers[path] ?? answers[path.replace(/[?].*/, '')] ?? answers[path.replace(/[?].*/, '?')];
    return found === undefined ? new Response('{}', { status: 404 }) : Response.json(found);
  });
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** A live session page beside the list of sessions. */
async function openPage(session = shown, beside: ReactNode = null) {
  await transcriptCode.load();
  const page = render(
    <NowProvider renderedAt={Date.now()}>
      <LiveProvider>
        <Beside session={session} />
        {beside}
        <SessionView
          sessionId="shown"
          initial={JSON.stringify({ ...start, session: { session, position: '10' } })}
          nonce={undefined}
          tab="transcript"
          publicUrl={null}
        />
      </LiveProvider>
    </NowProvider>,
  );
  await page.findByText('Another one');
  const stream = await nextStream(0);
  stream.accept().send({ event: 'up-to-date', data: { position: '10' } });
  await page.findByText('Live');
  return { page, stream };
}

async function nextStream(known: number): Promise<ScriptedStream> {
  await vi.waitFor(() => expect(script.streams.length).toBeGreaterThan(known));
  const stream = script.streams.at(-1) as ScriptedStream;
  expect(stream.topics).toEqual(['fleet', 'session:shown']);
  return stream;
}

it('doesn’t render transcript or header for updates of other sessions, and reads each topic once', async () => {
  const subscribe = vi.spyOn(LiveConnection.prototype, 'subscribe');
  const { page, stream } = await openPage();
  const before = renders();
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
  expect(renders()).toEqual(before);
  expect(subscribe.mock.calls.map(([topic]) => topic).sort()).toEqual(['fleet', 'session:shown']);

  const renamed = { ...shown, title: 'Shown anew', updatedPosition: '100' };
  stream.send({ event: 'session', id: '100', data: renamed });
  await page.findByRole('heading', { name: 'Shown anew' });
  expect(renders().header).toBeGreaterThan(before.header);
  expect(renders().transcript).toBe(before.transcript);
});

it('renders the transcript for the session’s events, and the header only for what it shows', async () => {
  const { stream } = await openPage();
  const before = renders();
  for (let id = 11; id < 20; id++) {
    const event = { type: 'TEXT_MESSAGE_CHUNK' as const, messageId: 'm2', role: 'assistant' as const, delta: `${id} ` };
    const data = { sessionId: 'shown', agentId: 'agent-1', seq: id, occurredAt: id, receivedAt: id, event };
    stream.send({ event: 'session-event', id: String(id), data });
    await vi.waitFor(() => expect(JSON.stringify(turnsGiven())).toContain(`${id} "`));
  }
  expect(renders().header).toBe(before.header);
  expect(renders().transcript).toBeGreaterThan(before.transcript);
});

it('reads everything again after a gap and resumes the stream from there', async () => {
  const { page, stream } = await openPage();
  stream.send({ event: 'session', id: '20', data: { ...other, title: 'Gone with the disk', updatedPosition: '20' } });
  await page.findByText('Gone with the disk');
  const turns = [aTurn({ items: [aMessage({ text: 'Restored words' })] })];
  const counts = { ...noSessions(), idle: 2 };
  answers = {
    '/sessions?': {
      sessions: [shown, { ...other, title: 'Restored', updatedPosition: '6' }],
      position: '7',
      hasMore: false,
      next: null,
      counts,
    },
    '/sessions/shown': { session: shown, position: '7' },
    '/sessions/shown/tasks': { tasks: [], position: '7' },
    '/sessions/shown/transcript': { turns, position: '7', hasMore: false },
  };
  const known = script.streams.length;
  stream.cut();
  const next = (await nextStream(known)).accept('gap', '7');
  await page.findByText('Restored');
  await vi.waitFor(() => expect(turnsGiven()).toEqual(turns));
  expect(page.queryByText('Gone with the disk')).toBeNull();
  next.send({ event: 'session', id: '8', data: { ...other, title: 'Goes on', updatedPosition: '8' } });
  await page.findByText('Goes on');
});

it('a failed session’s page and preview offer to send its last message again', async () => {
  const items = [aMessage({ role: 'user', text: 'Mend the login test' })];
  answers['/sessions/shown/transcript'] = { turns: [aTurn({ items })], position: '10', hasMore: false };
  const preview = (
    <AnswerStoresProvider>
      <section aria-label="Preview">
        <PreviewBody sessionId="shown" onReady={() => {}} />
      </section>
    </AnswerStoresProvider>
  );
  await openPage({ ...shown, state: 'failed' }, preview);
  for (const place of [screen.getByRole('region', { name: 'Preview' }), screen.getByRole('main')]) {
    fireEvent.click(await within(place).findByRole('button', { name: 'Retry' }));
    const text = await within(place).findByLabelText<HTMLTextAreaElement>('Send again:');
    expect(text.value).toBe('Mend the login test');
  }
});
