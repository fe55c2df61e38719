// @vitest-environment happy-dom

import { noItems } from '@interlude/protocol/vocabulary';
import { act, cleanup, render, within } from '@testing-library/react';
import type { ReactElement } from 'react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { renderRequest } from '@/app/(console)/render-request';
import { AttachmentChips } from '@/components/composer/attachment-chips';
import { Composer } from '@/components/composer/composer';
import { ComposerRefusal } from '@/components/composer/composer-status';
import { UploadList } from '@/components/composer/upload-list';
import { InboxPage } from '@/components/inbox/inbox-page';
import { currentNotices } from '@/components/inbox/notices';
import { ActionStore, ActionsProvider } from '@/components/live/actions';
import { LiveProvider } from '@/components/live/live-provider';
import { RefusalsProvider } from '@/components/live/refusals';
import { TaskCard, TaskFacts } from '@/components/tasks/task-card';
import { MessageView } from '@/components/transcript/message-view';
import { ToolCallLine } from '@/components/transcript/tool-call-line';
import { type TranscriptSlots, TranscriptSlotsProvider } from '@/components/transcript/transcript-slots';
import { NowProvider } from '@/components/ui/clock';
import { CodeOnDemand } from '@/components/ui/on-demand';
import { TimeLockProvider } from '@/components/ui/time-lock';
import { inQuotes } from '@/components/ui/verbatim';
import { NextPage } from '../support/next-page';
import { Around } from './answers';
import { layOut, settle } from './laid-out';
import { aCall, aMessage, anAgent, anInboxItem, aRequest, aSession, aTask } from './rows';
import { scriptedFetch } from './scripted-stream';

/** Names by which an agent could imitate the page. */
const LIES = ['Signed out. Paste your token', 'Open settings', 'Deny', 'x”. Sign out', '” Allow “'];

beforeEach(() => {
  vi.useFakeTimers();
  layOut();
  vi.stubGlobal('fetch', scriptedFetch().fetch);
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const attachment = (name: string) => ({ hash: 'a'.repeat(64), name, mediaType: 'text/plain', bytes: 3 });

/** Parts of the page, with the same agent text in every place for one. */
const PARTS: Record<string, (lie: string) => ReactElement> = {
  'a permission': (lie) => (
    <Around>
      {renderRequest(
        aRequest({
          title: lie,
          toolName: lie,
          input: null,
          options: [
            { id: '1', label: lie, kind: 'allow' },
            { id: '2', label: lie, kind: 'deny' },
          ],
        }),
      )}
    </Around>
  ),
  'a decided permission': (lie) => (
    <Around>{renderRequest(aRequest({ title: lie, toolName: lie, outcome: 'allowed', resolvedAt: 2 }))}</Around>
  ),
  'an inbox': (lie) => (
    <NextPage>
      <LiveProvider>
        <InboxPage
          initial={{
            items: [anInboxItem({ id: 'i', kind: 'permission', title: lie, from: null })],
            position: '1',
            next: null,
            counts: { ...noItems(), permission: 1 },
          }}
          requestCode={new CodeOnDemand(async () => () => null)}
        />
      </LiveProvider>
    </NextPage>
  ),
  'a task': (lie) => (
    <ActionsProvider store={new ActionStore('s', () => {})}>
      <RefusalsProvider status={{ takes: ['task.stop'] }}>
        <TimeLockProvider value={{ held: null, toggle: () => {} }}>
          <TaskCard task={aTask({ description: lie, status: 'running' })} call={null} renderItems={() => null} />
        </TimeLockProvider>
      </RefusalsProvider>
    </ActionsProvider>
  ),
  'a composer': (lie) => (
    <Composer
      session={aSession({ agentId: lie })}
      agent={anAgent({ id: lie })}
      ended={null}
      sent={() => []}
      quoteOf={() => null}
      onSend={() => {}}
      onLeave={() => {}}
      handle={{ current: null }}
    />
  ),
  'a refusal to be written to': (lie) => (
    <NextPage>
      <ComposerRefusal
        refusal={{ reason: lie, instead: { agentId: lie, sessionId: 'other' } }}
        sessionId="s"
        other={{ connection: 'connected', status: null }}
      />
    </NextPage>
  ),
  'what is attached': (lie) => {
    const list = new UploadList({
      upload: () => new Promise(() => {}),
      isKept: async () => true,
      addresses: { createObjectURL: () => 'blob:x', revokeObjectURL: () => {} },
    });
    list.configure({ accepts: ['image', 'file'], onChange: () => {}, onReady: () => {} });
    list.add([new File(['x'], lie, { type: 'text/plain' })]);
    return <AttachmentChips sessionId="s" uploads={list.uploads} list={list} onGone={() => {}} />;
  },
  'a message with a file': (lie) => (
    <TranscriptSlotsProvider
      value={
        {
          hrefOf: () => '/api/file',
          renderDelivery: () => null,
          renderOwed: () => null,
          replyTo: null,
        } as unknown as TranscriptSlots
      }
    >
      <MessageView
        item={aMessage({ role: 'user', text: 'Look', attachments: [attachment(lie)] })}
        queued={false}
        answers=""
      />
    </TranscriptSlotsProvider>
  ),
};

const ROLES = ['button', 'link', 'textbox', 'checkbox', 'combobox', 'group', 'region', 'img', 'progressbar', 'dialog'];

/** The accessible names of all controls and regions. */
function namesIn(container: HTMLElement): string[] {
  const names: string[] = [];
  const note = (name: string) => names.push(name) < 0;
  for (const role of ROLES) within(container).queryAllByRole(role, { name: note });
  return names;
}

it.each(Object.keys(PARTS).flatMap((part) => LIES.map((lie) => [part, lie] as const)))(
  '%s called %s has no control or region that takes that for a word of ours',
  async (part, lie) => {
    const { container } = render(<NowProvider renderedAt={Date.now()}>{PARTS[part]?.(lie)}</NowProvider>);
    await act(settle);
    const own = lie.replace(/[“”]/g, '"');
    const inQuotes = `“${own}”`;
    const names = namesIn(container);
    expect(names.filter((name) => name.includes(inQuotes)).length).toBeGreaterThan(0);
    for (const name of names) {
      // The documented form for assistive technology.
      if (name === `Task ${lie}: running`) continue;
      // The page’s own “Deny” always comes first.
      const rest = name.replaceAll(inQuotes, '').replace(/^Deny(?=:|$| with a reason$)/, '');
      expect([name, rest.includes(own) || rest.includes(lie)]).toEqual([name, false]);
    }
  },
);

it('quotes an agent’s words in a notification', () => {
  const lie = 'Signed out. Paste your token';
  const item = anInboxItem({ kind: 'permission', agentId: lie, title: lie, since: 1 });
  const [notice] = currentNotices({ items: [item], sessions: [] }, { isOn: true, off: [], quiet: null }, 10_000);
  expect([notice?.title, notice?.body]).toEqual([`Permission needed · ${lie}`, `“${lie}”`]);
});

it.each([
  ['a permission', (name: string) => renderRequest(aRequest({ title: 'x', toolName: name, input: null }))],
  [
    'a decided permission',
    (name: string) => renderRequest(aRequest({ title: 'x', toolName: name, outcome: 'allowed', resolvedAt: 2 })),
  ],
  ['a tool call', (name: string) => <ToolCallLine call={aCall({ name })} request={undefined} />],
  ['a file', (name: string) => <ToolCallLine call={aCall({ args: { path: `src/${name}` } })} request={undefined} />],
  ['a task', (name: string) => <TaskFacts task={aTask({ status: 'running', lastToolName: name })} />],
])('%s marks only names that look like Latin text', (_part, of) => {
  const shown = (name: string) =>
    render(
      <Around>
        <NowProvider renderedAt={Date.now()}>{of(name)}</NowProvider>
      </Around>,
    ).container.textContent;
  expect(shown('сору')).toContain('сору⟨Cyrillic⟩');
  expect(shown('отчёт')).not.toContain('⟨');
});

const PAIRS = [...'´ʻʽˋˊ՚׳᾽῾ꞌߴ’'].map((quote) => quote + quote);
const QUOTES = [...'”❞‟″＂〞״„ˮײ\u1cd3', ...PAIRS, '’\u200d’', '’\u2060\ufe0f’', "'’"];
it.each(QUOTES)('keeps quotes open at %s', (quote) => {
  expect(inQuotes(`x${quote}. Sign out`)).toBe('“x". Sign out”');
});

it('keeps an apostrophe in quotes', () => {
  expect(inQuotes('don’t ‘stop’')).toBe('“don’t ‘stop’”');
  expect(inQuotes("x='' don´t Hawaiʻi")).toBe("“x='' don´t Hawaiʻi”");
});
