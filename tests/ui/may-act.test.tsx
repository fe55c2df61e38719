// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, expect, test } from 'vitest';
import { MayActProvider } from '@/components/access/may-act';
import { SelectionBar } from '@/components/agents/selection-bar';
import { InboxBulk } from '@/components/inbox/inbox-bulk';
import { ItemActions } from '@/components/inbox/item-actions';
import { ActionStore, ActionsProvider } from '@/components/live/actions';
import { LevelSwitch } from '@/components/logs/level-switch';
import { AcceptReply, WaiveReply } from '@/components/obligations/settle-reply';
import { RequestBoardProvider } from '@/components/requests/request-board';
import { RequestCard } from '@/components/requests/request-card';
import { SessionMenu } from '@/components/sessions/session-menu';
import { TaskStop } from '@/components/tasks/task-stop';
import { NowProvider } from '@/components/ui/clock';
import { anAgent, anInboxItem, aRequest, aSession, aTask } from './rows';

afterEach(cleanup);

const nothing = () => {};

function show(may: boolean, what: ReactNode, answersHere = true) {
  render(
    <NowProvider renderedAt={Date.now()}>
      <QueryClientProvider client={new QueryClient()}>
        <MayActProvider may={may} why={null} answersHere={answersHere}>
          <ActionsProvider store={new ActionStore('s/1', nothing)}>
            <RequestBoardProvider>{what}</RequestBoardProvider>
          </ActionsProvider>
        </MayActProvider>
      </QueryClientProvider>
    </NowProvider>,
  );
}
/** Enabled controls. Buttons that only wait to settle count. */
const pressable = () => [
  ...screen.queryAllByRole('button').filter((one) => !one.hasAttribute('disabled')),
  ...screen.queryAllByRole('radio').filter((one) => one.getAttribute('aria-disabled') !== 'true'),
];

const aQuestion = aRequest({ id: 'q', requestKind: 'question' });
const candidate = { messageId: 'm2', position: '2', text: 'Done', at: 1 } as never;
const controls: [string, ReactNode][] = [
  ['waiving a pending reply', <WaiveReply key="" sessionId="s" messageId="m" />],
  ['accepting a reply', <AcceptReply key="" sessionId="s" messageId="m" candidate={candidate} />],
  ['arranging a session', <SessionMenu key="" session={aSession()} />],
  ['the level of a log', <LevelSwitch key="" agent={anAgent({ connection: 'connected', connectedSince: 1 })} />],
  ['stopping a task', <TaskStop key="" task={aTask({ status: 'running' })} />],
  ['marking an item of the inbox', <ItemActions key="" item={anInboxItem()} about="it" person="me" onMark={nothing} />],
];

test.each(controls)('%s is shown only to people who may act', (_what, control) => {
  show(true, control);
  expect(pressable()).not.toEqual([]);
  cleanup();
  show(false, control);
  expect(pressable()).toEqual([]);
});

test('explains to viewers why a selection has no actions', () => {
  show(false, <SelectionBar agents={[anAgent()]} total={1} onAll={nothing} onNone={nothing} />);
  screen.getByText('You can view agents, but not change them.');
  expect(pressable().map((one) => one.textContent)).toEqual(['None']);
  cleanup();
  show(
    false,
    <InboxBulk
      items={[anInboxItem()]}
      isUnfolded={() => false}
      onUnfold={nothing}
      onMark={nothing}
      onNone={nothing}
      notify={nothing}
      onClosed={nothing}
    />,
  );
  screen.getByText('You can view the inbox, but not change it.');
  expect(pressable().map((one) => one.textContent)).toEqual(['Select none']);
});

test('explains to viewers that they can’t answer a request', () => {
  show(false, <RequestCard item={aQuestion} input={null} size="" />);
  screen.getByText('You can view this request, but not answer it.');
  expect(pressable()).toEqual([]);
});

test('opens a window for answers in an embed', () => {
  show(true, <RequestCard item={aQuestion} input={null} size="" />, false);
  const link = screen.getByRole('link', { name: 'Answer in Interlude' });
  expect(link.getAttribute('href')).toBe('/sessions/s%2F1#request-q');
  expect([link.getAttribute('target'), link.getAttribute('rel')]).toEqual(['_blank', 'noopener']);
  expect(pressable()).toEqual([]);
});
